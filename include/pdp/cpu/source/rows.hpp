#pragma once

/// Definitions for pdp/cpu/rows.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <concepts>
#include <cstring>

#include <pdp/core/cast.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/rows.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

template <std::floating_point T>
void add_row(const Cpu& cpu, const T* row, Matrix<T> rows) {
  const Index least = least_part / std::max<Index>(rows.cols, 1) + 1;
  in_parts(cpu, rows.rows, least, [&](Index first, Index last) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using V = Lanes<T, S>;
      for (Index r = first; r < last; ++r) {
        T* const to = rows.row(r);
        Index c = 0;
        for (; c + V::count <= rows.cols; c += V::count) (V::load(to + c) + V::load(row + c)).store(to + c);
        for (; c < rows.cols; ++c) to[c] += row[c];
      }
    });
  });
}

template <std::floating_point T>
void sum_rows(const Cpu& cpu, Matrix<const T> rows, T* sums, bool accumulate) {
  constexpr Index least_columns = 128;  // with fewer, threads would share cache lines of the matrix and of the sums
  const Index least = std::max(least_columns, least_part / std::max<Index>(rows.rows, 1));
  in_parts(cpu, rows.cols, least, [&](Index first, Index last) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using V = Lanes<T, S>;
      if (!accumulate) std::fill(sums + first, sums + last, T{});
      // Adds four rows at a time, along the rows. One column at a time would stride through memory.
      Index r = 0;
      for (; r + 4 <= rows.rows; r += 4) {
        const T *const a = rows.row(r), *const b = rows.row(r + 1), *const c = rows.row(r + 2), *const d = rows.row(r + 3);
        Index i = first;
        for (; i + V::count <= last; i += V::count)
          (V::load(sums + i) + V::load(a + i) + V::load(b + i) + V::load(c + i) + V::load(d + i)).store(sums + i);
        for (; i < last; ++i) sums[i] = sums[i] + a[i] + b[i] + c[i] + d[i];
      }
      for (; r < rows.rows; ++r) {
        const T* const from = rows.row(r);
        Index i = first;
        for (; i + V::count <= last; i += V::count) (V::load(sums + i) + V::load(from + i)).store(sums + i);
        for (; i < last; ++i) sums[i] += from[i];
      }
    });
  });
}

template <class T>
void add(const Cpu& cpu, Matrix<const T> left, Matrix<const T> right, Matrix<T> out) {
  elementwise<T>(cpu, out.size(),
                 [=]<class V>(Index i, auto io) { io.store(io.load(left.data + i) + io.load(right.data + i), out.data + i); });
}

template <std::floating_point T>
void sum_of_squares(const Cpu& cpu, Matrix<const T> values, double* sum) {
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<double, S>;
    using Loaded = detail::Vector<T, V::count * as_int(sizeof(T))>;
    constexpr Index chains = 4;  // four sums, as a compiler must not reorder the terms of a single one
    const auto square = [](const T* from) {
      Loaded loaded;
      std::memcpy(&loaded, from, sizeof loaded);
      const V value{__builtin_convertvector(loaded, typename V::Vector)};
      return value * value;
    };
    V a{}, b{}, c{}, d{};
    Index i = 0;
    for (; i + chains * V::count <= values.size(); i += chains * V::count) {
      const T* const from = values.data + i;
      a = a + square(from);
      b = b + square(from + V::count);
      c = c + square(from + 2 * V::count);
      d = d + square(from + 3 * V::count);
    }
    double found = ((a + b) + (c + d)).sum();
    for (; i < values.size(); ++i) found += as_double(values.data[i]) * as_double(values.data[i]);
    *sum += found;
  });
}

template <class T>
void copy(const Cpu&, Matrix<const T> from, Matrix<T> to) {
  std::copy_n(from.data, from.size(), to.data);
}

template <class T>
void copy_columns(const Cpu&, Matrix<const T> from, Index first, Matrix<T> to, Index to_first, Index columns) {
  for (Index row = 0; row < from.rows; ++row) std::copy_n(from.row(row) + first, columns, to.row(row) + to_first);
}

}  // namespace pdp::cpu
