#include <array>

#include <pdp/comm/hierarchical.hpp>

int sum_of_ranks(pdp::comm::Default& world) {
  std::array sum{world.rank() + 1};
  world.all_reduce(sum, pdp::comm::Sum{});
  return sum[0];
}
