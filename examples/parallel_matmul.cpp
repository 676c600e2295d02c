// Computes C[m, n] = A[m, k] B[k, n] on several ranks in two ways. Compares both with the product that rank 0 computes alone.
//
//   parallel_matmul --world-size 4 --m 1000 --n 500 --k 2000

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include <pdp/comm/shards.hpp>
#include <pdp/pdp.hpp>

#include "common/command_line.hpp"
#include "common/run.hpp"

using View = pdp::Matrix<const float>;
constexpr pdp::cpu::Cpu cpu;
constexpr pdp::Index most_values = pdp::Index{1} << 30;  // per matrix: 4 GiB. The product of two such numbers does not overflow.

/// A matrix that owns its memory, initially zero. On a rank that does not hold it, it has a shape but no data.
struct OwnedMatrix : pdp::Matrix<float> {
  OwnedMatrix(pdp::Index row_count, pdp::Index column_count, bool held = true)
      : Matrix{nullptr, row_count, column_count}, memory{held ? row_count * column_count : 0} {
    data = memory.data();
  }
  pdp::Buffer<float> memory;
};

OwnedMatrix transpose(View matrix) {
  OwnedMatrix transposed{matrix.cols, matrix.rows, matrix.data != nullptr};
  for (pdp::Index row = 0; row < matrix.rows && matrix.data != nullptr; ++row)
    for (pdp::Index col = 0; col < matrix.cols; ++col) transposed.row(col)[row] = matrix.row(row)[col];
  return transposed;
}

/// Returns the norm of the difference divided by the norm of `expected` (Frobenius norms, summed in double).
double relative_error(View product, View expected) {
  double difference = 0, norm = 0;
  for (pdp::Index i = 0; i < expected.size(); ++i) {
    const double wanted = static_cast<double>(expected.data[i]), off = static_cast<double>(product.data[i]) - wanted;
    difference += off * off;
    norm += wanted * wanted;
  }
  return std::sqrt(difference / norm);
}

/// Returns the number of elements in each rank's share of the rows. Shares differ by at most one row. Some are empty if there are more
/// ranks than rows.
std::vector<std::size_t> shares(pdp::Index rows, pdp::Index cols, int size) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < size; ++rank) counts.push_back(pdp::comm::block_size(pdp::as_size(rows), size, rank) * pdp::as_size(cols));
  return counts;
}

// [rows]
/// Returns this rank's share of the rows of a matrix that rank 0 holds.
OwnedMatrix scatter_rows(auto& world, View whole) {
  const auto counts = shares(whole.rows, whole.cols, world.size());
  OwnedMatrix rows{pdp::as_index(counts[pdp::as_size(world.rank())]) / whole.cols, whole.cols};
  world.scatter(whole.values(), rows.values(), counts, 0);
  return rows;
}
// [rows]

/// Returns, on rank 0, the matrix that consists of all ranks' shares of the rows.
OwnedMatrix gather_rows(auto& world, View mine, pdp::Index rows) {
  const auto counts = shares(rows, mine.cols, world.size());
  OwnedMatrix whole{rows, mine.cols, world.rank() == 0};
  world.gather(mine.values(), whole.values(), counts, 0);
  return whole;
}

// [by_row]
/// Broadcasts B, multiplies each rank's rows of A by it, and gathers the product on rank 0.
OwnedMatrix multiply_by_row(auto& world, View a, pdp::Matrix<float> b) {
  world.broadcast(b.values(), 0);
  const OwnedMatrix rows_of_a = scatter_rows(world, a);
  OwnedMatrix rows_of_c{rows_of_a.rows, b.cols};
  pdp::cpu::gemm<float>(cpu, rows_of_a, b, rows_of_c, false);
  return gather_rows(world, rows_of_c, a.rows);
}
// [by_row]

// [by_reduction]
/// Multiplies each rank's columns of A by its rows of B. The sum of these products is on all ranks.
OwnedMatrix multiply_by_reduction(auto& world, View a, View b) {
  const OwnedMatrix columns_of_a = scatter_rows(world, transpose(a)), rows_of_b = scatter_rows(world, b);
  OwnedMatrix c{a.rows, b.cols};
  pdp::cpu::gemm_tn<float>(cpu, columns_of_a, rows_of_b, c, false);
  world.all_reduce(c.values(), pdp::comm::Sum{});
  return c;
}
// [by_reduction]

/// Throws UsageError if a matrix would have more values than `most_values`.
void check_size(char name, pdp::Index rows, pdp::Index cols) {
  if (rows * cols > most_values)
    throw pdp::UsageError{pdp::text("the matrix ", name, " would have ", rows, " x ", cols, " values; the maximum is ", most_values)};
}

int main(int argc, char** argv) {
  pdp::launch::Options launch;
  pdp::Index m = 1024, n = 1024, k = 1024;
  examples::CommandLine line{argc, argv, "Multiplies two matrices on several ranks: C[m, n] = A[m, k] B[k, n]."};
  line.number("--m", m, pdp::Index{1}, most_values, "rows of A and of C");
  line.number("--n", n, pdp::Index{1}, most_values, "columns of B and of C");
  line.number("--k", k, pdp::Index{1}, most_values, "columns of A, rows of B");
  line.ranks(launch, " (2 by default)");
  line.read([&] {
    check_size('A', m, k);
    check_size('B', k, n);
    check_size('C', m, n);
    if (!launch.ranks_are_given()) launch.ranks = 2;
  });

  return examples::run(launch, [&](auto& world) {
    const int rank = world.rank();
    // [ranks]
    std::vector<int> ranks(pdp::as_size(world.size()));
    world.all_gather(std::array{rank}, ranks);
    fmt::print(stdout, "My rank is {}, same as {}\n", rank, ranks[pdp::as_size(rank)]);
    std::fflush(stdout);
    // [ranks]

    const bool root = rank == 0;  // only rank 0 has A and B at first
    OwnedMatrix a{m, k, root}, b{k, n}, serial{m, n, root};
    if (root) {
      pdp::random::fill_uniform(pdp::random::make_key(0, "A"), 0, a.values());
      pdp::random::fill_uniform(pdp::random::make_key(0, "B"), 0, b.values());
      pdp::cpu::gemm<float>(cpu, a, b, serial, false);
    }
    const OwnedMatrix by_row = multiply_by_row(world, a, b), by_reduction = multiply_by_reduction(world, a, b);
    if (!root) return 0;
    const double row_error = relative_error(by_row, serial), reduction_error = relative_error(by_reduction, serial);
    pdp::print(world, "by row: relative error {:.2e}", row_error);
    pdp::print(world, "by reduction: relative error {:.2e}", reduction_error);
    return row_error <= 1e-5 && reduction_error <= 1e-5 ? 0 : 1;  // 1 also if an error is NaN
  });
}
