#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <pdp/core/view.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

/// Adds one row to every row of `rows`: a bias.
template <class T>
void add_row(const Cpu&, const T* row, Matrix<T> rows) {
  for (Index r = 0; r < rows.rows; ++r) {
    T* __restrict to = rows.row(r);
    for (Index c = 0; c < rows.cols; ++c) to[c] += row[c];
  }
}

/// sums (+)= the sum of all rows: the gradient of a bias.
template <class T>
void sum_rows(const Cpu&, Matrix<const T> rows, T* __restrict sums, bool accumulate) {
  if (!accumulate) std::fill_n(sums, rows.cols, T{});
  for (Index r = 0; r < rows.rows; ++r) {
    const T* from = rows.row(r);
    for (Index c = 0; c < rows.cols; ++c) sums[c] += from[c];
  }
}

/// out = left + right, elementwise. `out` may be one of them.
template <class T>
void add(const Cpu&, Matrix<const T> left, Matrix<const T> right, Matrix<T> out) {
  for (Index i = 0; i < out.size(); ++i) out.data[i] = left.data[i] + right.data[i];
}

/// values *= factor.
template <class T>
void scale(const Cpu&, T factor, Matrix<T> values) {
  for (Index i = 0; i < values.size(); ++i) values.data[i] *= factor;
}

/// The square of the norm, in double: of floats it is finite unless one of them is not.
template <class T>
double sum_of_squares(const Cpu&, Matrix<const T> values) {
  constexpr Index lanes = 16;  // sums side by side, as a compiler may not reorder a single one
  std::array<double, lanes> sums{};
  const Index whole = values.size() - values.size() % lanes;
  for (Index i = 0; i < whole; i += lanes)
    for (Index lane = 0; lane < lanes; ++lane) {
      const double value = static_cast<double>(values.data[i + lane]);
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  for (Index i = whole; i < values.size(); ++i) sums[0] += static_cast<double>(values.data[i]) * static_cast<double>(values.data[i]);
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

template <class T>
void copy(const Cpu&, Matrix<const T> from, Matrix<T> to) {
  std::copy_n(from.data, from.size(), to.data);
}

}  // namespace pdp::host
