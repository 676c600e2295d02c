// C[m, n] = A[m, k] B[k, n] on several ranks, in two ways, each compared with what rank 0 finds alone.
//
//   parallel_matmul --world-size 4 --m 1000 --n 500 --k 2000

#include <array>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include <pdp/pdp.hpp>

#include "common/flags.hpp"
#include "common/matrix.hpp"
#include "common/run.hpp"

using examples::OwnedMatrix, examples::View;
constexpr pdp::cpu::Cpu cpu;

/// This rank's share of the rows of a matrix that rank 0 holds.
OwnedMatrix scatter_rows(auto& world, View whole) {
  const auto counts = examples::shares(whole.rows, whole.cols, world.size());
  OwnedMatrix rows{examples::share(whole.rows, world.rank(), world.size()), whole.cols};
  world.scatter(whole.values(), rows.values(), counts, 0);
  return rows;
}

/// On rank 0 the matrix of whose rows each rank holds its share.
OwnedMatrix gather_rows(auto& world, View mine, pdp::Index rows) {
  const auto counts = examples::shares(rows, mine.cols, world.size());
  OwnedMatrix whole{rows, mine.cols, world.rank() == 0};
  world.gather(mine.values(), whole.values(), counts, 0);
  return whole;
}

/// Every rank multiplies its rows of A by the whole of B, which all hold afterwards. The product is on rank 0.
OwnedMatrix multiply_by_row(auto& world, View a, pdp::Matrix<float> b) {
  world.broadcast(b.values(), 0);
  const OwnedMatrix rows_of_a = scatter_rows(world, a);
  OwnedMatrix rows_of_c{rows_of_a.rows, b.cols};
  pdp::cpu::gemm<float>(cpu, rows_of_a, b, rows_of_c, false);
  return gather_rows(world, rows_of_c, a.rows);
}

/// Every rank multiplies its columns of A by its rows of B. The sum of these products is on all ranks.
OwnedMatrix multiply_by_reduction(auto& world, View a, View b) {
  const OwnedMatrix columns_of_a = scatter_rows(world, examples::transpose(a)), rows_of_b = scatter_rows(world, b);
  OwnedMatrix c{a.rows, b.cols};
  pdp::cpu::gemm_tn<float>(cpu, columns_of_a, rows_of_b, c, false);
  world.all_reduce(c.values(), pdp::comm::Sum{});
  return c;
}

int main(int argc, char** argv) {
  const auto flags = examples::parse_product(argc, argv, "Multiplies two matrices on several ranks: C[m, n] = A[m, k] B[k, n].");

  return examples::run(flags.launch, [&](auto& world) {
    const int rank = world.rank();
    std::vector<int> ranks(static_cast<std::size_t>(world.size()));
    world.all_gather(std::array{rank}, ranks);
    fmt::print(stdout, "My rank is {}, same as {}\n", rank, ranks[static_cast<std::size_t>(rank)]);
    std::fflush(stdout);

    const bool root = rank == 0;  // it alone has A and B at first
    OwnedMatrix a{flags.m, flags.k, root}, b{flags.k, flags.n}, serial{flags.m, flags.n, root};
    if (root) {
      pdp::random::fill_uniform(pdp::random::make_key(0, "A"), 0, a.values());
      pdp::random::fill_uniform(pdp::random::make_key(0, "B"), 0, b.values());
      pdp::cpu::gemm<float>(cpu, a, b, serial, false);
    }
    const OwnedMatrix by_row = multiply_by_row(world, a, b), by_reduction = multiply_by_reduction(world, a, b);
    if (!root) return 0;
    const double row_error = examples::relative_error(by_row, serial), reduction_error = examples::relative_error(by_reduction, serial);
    pdp::print(world, "by row: relative error {:.2e}", row_error);
    pdp::print(world, "by reduction: relative error {:.2e}", reduction_error);
    return row_error <= 1e-5 && reduction_error <= 1e-5 ? 0 : 1;  // also where an error is no number
  });
}
