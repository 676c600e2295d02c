#include <pdp/comm/tcp.hpp>
#include <pdp/launch/run.hpp>

#include <array>
#include <cstdio>

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Tcp>(argc, argv, [](auto& world) {
    std::array sum{world.rank() + 1};
    world.all_reduce(sum, pdp::comm::Sum{});
    if (world.rank() == 0) std::printf("%d ranks, sum %d\n", world.size(), sum[0]);
  });
}
