#include <pdp/comm/hierarchical.hpp>
#include <pdp/launch/run.hpp>

#include <array>
#include <cstdio>
#include <stdexcept>

bool multiplies_by_onednn();                      // defined in this program
int sum_of_ranks(pdp::comm::Default& world);      // defined in a library
int product_of_sizes(pdp::comm::Default& world);  // defined in the same library

/// Sums rank + 1 over all ranks. With --ranks 2 the sum is 3.
int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    std::array sum{static_cast<float>(world.rank() + 1)};
    world.all_reduce(sum, pdp::comm::Sum{});
    if constexpr (requires { sum_of_ranks(world); }) {
      if (static_cast<float>(sum_of_ranks(world)) != sum[0]) throw std::runtime_error{"the library has found another sum"};
      if (product_of_sizes(world) != 1 << world.size()) throw std::runtime_error{"the library has found another product"};
    }
    if (!multiplies_by_onednn()) throw std::runtime_error{"oneDNN is linked and not used"};
    if (world.rank() == 0) std::printf("%d ranks, sum %g\n", world.size(), static_cast<double>(sum[0]));
  });
}
