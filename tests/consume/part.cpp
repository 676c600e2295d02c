#include <array>

#include <pdp/comm/tcp.hpp>

int sum_of_ranks(pdp::comm::Tcp& world) {
  std::array sum{world.rank() + 1};
  world.all_reduce(sum, pdp::comm::Sum{});
  return sum[0];
}
