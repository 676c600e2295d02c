#include "every.hpp"  // every header of pdp that needs no GPU

#include <array>
#include <cstdio>
#include <string>

template class pdp::comm::Member<pdp::comm::TcpTransport>;

/// Sums rank + 1 over all ranks, with the communicator that the command line names.
int main(int argc, char** argv) {
  using namespace pdp::comm;
  return pdp::launch::run<Default, Tcp, Shm, Gloo, Mpi>(argc, argv, [](Any& world) {
    std::array sum{static_cast<float>(world.rank() + 1)};
    world.all_reduce(sum, Sum{});
    if (world.rank() == 0)
      std::printf("%d ranks of %s, sum %g, %s\n", world.size(), std::string{world.name()}.c_str(), static_cast<double>(sum[0]),
                  pdp::cpu::has_onednn({}) ? "oneDNN" : "Eigen");
  });
}
