#pragma once

/// Definitions for pdp/cpu/bfloat16_products.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <concepts>

#include <pdp/core/affine.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/activation.hpp>
#include <pdp/cpu/bfloat16_products.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/float_rows.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/onednn/product.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/source/normalise.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// Returns whether oneDNN has computed c (+)= left right from 16-bit numbers.
template <class Out>
bool multiply_by_onednn(const Cpu& cpu, const onednn::OperandOf<BFloat16>& left, const onednn::OperandOf<BFloat16>& right, Matrix<Out> c,
                        Index depth, bool accumulate) {
  if (!has_onednn(cpu) || c.size() == 0 || depth == 0) return false;
  if (cpu.products != Products::sixteen_bits && !onednn::prefers_bfloat16()) return false;
  return onednn::product_of_bfloat16(left, right, c, depth, accumulate, cpu.threads);
}

/// A block of a matrix: rows first_row to first_row + rows - 1, and columns likewise.
struct Place {
  Index first_row, rows, first_column, columns;
};
inline void widen_block(const Cpu& cpu, Matrix<const BFloat16> from, const Place& place, float* to) {
  in_parts(cpu, place.rows, least_part / std::max<Index>(place.columns, 1) + 1, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row)
      convert_some(cpu.alone(), from.row(place.first_row + row) + place.first_column, place.columns, to + row * place.columns);
  });
}
inline void narrow_block(const Cpu& cpu, const float* from, const Place& place, Matrix<BFloat16> to) {
  in_parts(cpu, place.rows, least_part / std::max<Index>(place.columns, 1) + 1, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row)
      convert_some(cpu.alone(), from + row * place.columns, place.columns, to.row(place.first_row + row) + place.first_column);
  });
}

/// Calls visit(first, count) for parts of at most `most` that together are 0 to all - 1; once if there are none.
template <class Visit>
void for_each_part(Index all, Index most, const Visit& visit) {
  Index first = 0;
  do {
    visit(first, std::min(most, all - first));
    first += most;
  } while (first < all);
}

/// Computes c (+)= a b, or a b^T if `is_transposed`, from blocks of the operands as floats. Calls finish(block of c, first column) before
/// it rounds a block of c. Each sum is rounded once.
template <bool is_transposed, class Finish>
void multiply_widened(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<BFloat16> c, bool accumulate,
                      const Finish& finish) {
  if (c.size() == 0) return;
  // A block of b has at most 1 MiB, and those of a and c together little more than 2 MiB. If a has few rows, a block of b is long in the
  // direction in which b lies in memory.
  constexpr Index most_values = 512 * 512, few_rows = 256;
  const Index length = c.rows <= few_rows ? 2048 : 512, breadth = most_values / length;
  const Index depth = std::min(a.cols, is_transposed ? length : breadth), columns = std::min(c.cols, is_transposed ? breadth : length);
  const Index rows = std::min(c.rows, std::max(few_rows, 2 * most_values / (depth + columns)));
  float* const right = floats_of_thread(cpu, depth * columns + rows * (depth + columns));
  float* const left = right + depth * columns;
  float* const out = left + rows * depth;
  for_each_part(c.cols, columns, [&](Index first_column, Index some_columns) {
    for_each_part(c.rows, rows, [&](Index first_row, Index some_rows) {
      const Place place{first_row, some_rows, first_column, some_columns};
      const Matrix<float> block{out, some_rows, some_columns};
      if (accumulate) widen_block(cpu, c, place, out);
      for_each_part(a.cols, depth, [&](Index first, Index some) {
        const bool is_new = a.cols > depth || first_row == 0;  // otherwise the block is that of the rows before
        widen_block(cpu, a, {first_row, some_rows, first, some}, left);
        const Matrix<const float> terms{left, some_rows, some};
        if constexpr (is_transposed) {
          if (is_new) widen_block(cpu, b, {first_column, some_columns, first, some}, right);
          gemm_nt(cpu, terms, Matrix<const float>{right, some_columns, some}, block, accumulate || first > 0);
        } else {
          if (is_new) widen_block(cpu, b, {first, some, first_column, some_columns}, right);
          gemm(cpu, terms, Matrix<const float>{right, some, some_columns}, block, accumulate || first > 0);
        }
      });
      finish(block, first_column);
      narrow_block(cpu, out, place, c);
    });
  });
}

/// Adds `row` to every row.
template <class E>
void add_row_of(const Cpu& cpu, const BFloat16* row, Matrix<E> rows) {
  in_parts(cpu, rows.rows, least_part / std::max<Index>(rows.cols, 1) + 1, [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      for (Index each = begin; each < end; ++each)
        at_lanes<Lanes<float, S>>(0, rows.cols, [=, to = rows.row(each)](const auto& at) { at.store(at(to) + at(row), to); });
    });
  });
}

struct KeepBlock {
  void operator()(Matrix<float>, Index) const {}
};

}  // namespace detail

template <std::same_as<BFloat16> T>
void gemm(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  if (detail::multiply_by_onednn(cpu, {a.data, a.cols, false}, {b.data, b.cols, false}, c, a.cols, accumulate)) return;
  detail::multiply_widened<false>(cpu, a, b, c, accumulate, detail::KeepBlock{});
}
template <std::same_as<BFloat16> T>
void gemm_nt(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  if (detail::multiply_by_onednn(cpu, {a.data, a.cols, false}, {b.data, b.cols, true}, c, a.cols, accumulate)) return;
  detail::multiply_widened<true>(cpu, a, b, c, accumulate, detail::KeepBlock{});
}
template <std::same_as<BFloat16> T>
void gemm_tn(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<float> c, bool accumulate) {
  if (detail::multiply_by_onednn(cpu, {a.data, a.cols, true}, {b.data, b.cols, false}, c, a.rows, accumulate)) return;
  // Each block reads and writes all of c. So a block is long, but its floats take 16 MiB, unless these are fewer than 128 rows.
  const Index least_rows = std::clamp<Index>(4 * 1024 * 1024 / std::max<Index>(a.cols + b.cols, 1), 128, 512);
  const detail::FloatRows rows{cpu, a.rows, a.cols + b.cols, 0, least_rows};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> left = block.widen(a), right = block.widen(b);
    gemm_tn(cpu, left, right, c, accumulate || block.first() > 0);
  });
}

template <std::same_as<BFloat16> T>
void add_row(const Cpu& cpu, const T* row, Matrix<T> rows) {
  detail::add_row_of(cpu, row, rows);
}
template <std::same_as<BFloat16> T>
void sum_rows(const Cpu& cpu, Matrix<const T> rows, float* sums, bool accumulate) {
  constexpr Index least_columns = 128, together = 32;  // as for floats; rows whose sum stays in a register
  if (!accumulate) std::fill_n(sums, rows.cols, 0.0f);
  in_parts(cpu, rows.cols, std::max(least_columns, least_part / std::max<Index>(rows.rows, 1)), [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using V = Lanes<float, S>;
      for (Index first = 0; first < rows.rows; first += together) {
        const Index last = std::min(first + together, rows.rows);
        detail::at_lanes<V>(begin, end, [=](const auto& at) {
          V sum = at(sums);
          for (Index row = first; row < last; ++row) sum = sum + at(rows.row(row));
          at.store(sum, sums);
        });
      }
    });
  });
}

template <std::same_as<BFloat16> T>
void affine(const Cpu& cpu, Matrix<const T> x, Matrix<const T> weight, const T* bias, Matrix<T> y, Activation activation) {
  if (detail::multiply_by_onednn(cpu, {x.data, x.cols, false}, {weight.data, weight.cols, false}, y, x.cols, false)) {
    if (bias != nullptr) add_row(cpu, bias, y);
    if (activation == Activation::relu) relu(cpu, Matrix<const BFloat16>{y}, y);
    return;
  }
  detail::multiply_widened<false>(cpu, x, weight, y, false, [&](Matrix<float> block, Index first_column) {
    if (bias != nullptr) detail::add_row_of(cpu, bias + first_column, block);
    if (activation == Activation::relu) relu(cpu, Matrix<const float>{block}, block);
  });
}

}  // namespace pdp::cpu
