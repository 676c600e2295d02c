#include <pdp/cpu/rows.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using pdp::Index;
using pdp::Matrix;
using pdp::cpu::Cpu;

namespace {

/// Returns rows x cols whole numbers, whose sums are exact in any order, and a guard value behind them.
template <class T>
std::vector<T> numbered(Index rows, Index cols, T factor = 1) {
  std::vector<T> values;
  for (Index i = 0; i < rows * cols; ++i) values.push_back(factor * static_cast<T>(i + 1));
  values.push_back(-1);
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("add_row adds one row to each row of a matrix", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5), cols = GENERATE(as<Index>{}, 1, 7, 8, 65);
  auto values = numbered<TestType>(rows, cols);
  const auto row = numbered<TestType>(1, cols, 1000);
  add_row(cpu, row.data(), Matrix<TestType>{values.data(), rows, cols});

  auto expected = numbered<TestType>(rows, cols);
  for (Index i = 0; i < rows * cols; ++i) expected[static_cast<std::size_t>(i)] += static_cast<TestType>(1000 * (i % cols + 1));
  CHECK(values == expected);
}

TEMPLATE_TEST_CASE("sum_rows overwrites the output with the sum of the rows, or adds to it", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5, 100), cols = GENERATE(as<Index>{}, 1, 7, 8, 65);
  const bool accumulate = GENERATE(false, true);
  const auto values = numbered<TestType>(rows, cols);
  std::vector<TestType> sums(static_cast<std::size_t>(cols), accumulate ? TestType{3} : static_cast<TestType>(std::nan("")));
  sums.push_back(-1);
  sum_rows(cpu, Matrix<const TestType>{values.data(), rows, cols}, sums.data(), accumulate);

  std::vector<TestType> expected(static_cast<std::size_t>(cols), accumulate ? TestType{3} : TestType{0});
  for (Index i = 0; i < rows * cols; ++i) expected[static_cast<std::size_t>(i % cols)] += static_cast<TestType>(i + 1);
  expected.push_back(-1);
  CHECK(sums == expected);
}

TEMPLATE_TEST_CASE("add adds elementwise, also in place", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 3), cols = GENERATE(as<Index>{}, 1, 9);
  const auto left = numbered<TestType>(rows, cols), right = numbered<TestType>(rows, cols, 100);
  const auto in = [&](const auto& values) { return Matrix<const TestType>{values.data(), rows, cols}; };
  auto expected = numbered<TestType>(rows, cols, 101);

  std::vector<TestType> out(left.size(), -1);
  add(cpu, in(left), in(right), Matrix<TestType>{out.data(), rows, cols});
  CHECK(out == expected);

  auto onto_left = left, onto_right = right;
  add(cpu, in(onto_left), in(right), Matrix<TestType>{onto_left.data(), rows, cols});
  add(cpu, in(left), in(onto_right), Matrix<TestType>{onto_right.data(), rows, cols});
  CHECK(onto_left == expected);
  CHECK(onto_right == expected);
}

TEMPLATE_TEST_CASE("copy copies all rows and nothing beyond them", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 3), cols = GENERATE(as<Index>{}, 1, 9);
  auto from = numbered<TestType>(rows, cols);
  std::vector<TestType> to(from.size(), 55);
  copy(cpu, Matrix<const TestType>{from.data(), rows, cols}, Matrix<TestType>{to.data(), rows, cols});
  from.back() = 55;
  CHECK(to == from);
}

TEMPLATE_TEST_CASE("sum_of_squares is exact in double, and finite exactly if all elements are finite", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5), cols = GENERATE(as<Index>{}, 1, 7, 16, 65);
  auto values = numbered<TestType>(rows, cols);
  const auto squares = [&](double before = 0) {
    sum_of_squares(cpu, Matrix<const TestType>{values.data(), rows, cols}, &before);
    return before;
  };
  const auto n = static_cast<double>(rows * cols);
  CHECK(squares() == n * (n + 1) * (2 * n + 1) / 6);
  CHECK(squares(5) == squares() + 5);
  if (rows * cols == 0) return;
  for (const Index at : {Index{0}, rows * cols / 2, rows * cols - 1})
    for (const double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      const TestType was = std::exchange(values[static_cast<std::size_t>(at)], static_cast<TestType>(odd));
      CHECK_FALSE(std::isfinite(squares()));
      values[static_cast<std::size_t>(at)] = was;
    }
  std::fill(values.begin(), values.end(), static_cast<TestType>(std::numeric_limits<float>::max()));
  CHECK(std::isfinite(squares()));
}
