#pragma once

#include <algorithm>

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

template <class T>
void copy(const Cpu&, Matrix<const T> from, Matrix<T> to) {
  std::copy_n(from.data, from.size(), to.data);
}

}  // namespace pdp::host
