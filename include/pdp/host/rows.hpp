#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <pdp/core/view.hpp>
#include <pdp/host/elementwise.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

/// Adds one row to every row of `rows`: a bias.
template <class T>
void add_row(const Cpu& cpu, const T* row, Matrix<T> rows) {
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    for (Index r = 0; r < rows.rows; ++r) {
      T* const to = rows.row(r);
      Index c = 0;
      for (; c + V::count <= rows.cols; c += V::count) (V::load(to + c) + V::load(row + c)).store(to + c);
      for (; c < rows.cols; ++c) to[c] += row[c];
    }
  });
}

/// sums (+)= the sum of all rows: the gradient of a bias.
template <class T>
void sum_rows(const Cpu& cpu, Matrix<const T> rows, T* sums, bool accumulate) {
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    Index c = 0;
    for (; c + V::count <= rows.cols; c += V::count) {
      V sum = accumulate ? V::load(sums + c) : V{};
      for (Index r = 0; r < rows.rows; ++r) sum = sum + V::load(rows.row(r) + c);
      sum.store(sums + c);
    }
    if (!accumulate) std::fill_n(sums + c, rows.cols - c, T{});
    for (Index r = 0; r < rows.rows; ++r)
      for (Index each = c; each < rows.cols; ++each) sums[each] += rows.row(r)[each];
  });
}

/// out = left + right, elementwise. `out` may be one of them.
template <class T>
void add(const Cpu& cpu, Matrix<const T> left, Matrix<const T> right, Matrix<T> out) {
  elementwise<T>(cpu, out.size(),
                 [=]<class V>(Index i, auto io) { io.store(io.load(left.data + i) + io.load(right.data + i), out.data + i); });
}

/// values *= factor.
template <class T>
void scale(const Cpu& cpu, T factor, Matrix<T> values) {
  elementwise<T>(cpu, values.size(), [=]<class V>(Index i, auto io) { io.store(io.load(values.data + i) * factor, values.data + i); });
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
