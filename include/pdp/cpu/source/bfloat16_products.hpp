#pragma once

/// Definitions for pdp/cpu/bfloat16_products.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/bfloat16_products.hpp>
#include <pdp/cpu/float_rows.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/onednn/product.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// Some columns of a matrix, from `first` on, to or from floats.
inline void widen_columns(const Cpu& cpu, Matrix<const BFloat16> from, Index first, Matrix<float> to) {
  for (Index row = 0; row < to.rows; ++row) convert_some(cpu, from.row(row) + first, to.cols, to.row(row));
}
inline void narrow_columns(const Cpu& cpu, Matrix<const float> from, Matrix<BFloat16> to, Index first) {
  for (Index row = 0; row < from.rows; ++row) convert_some(cpu, from.row(row), from.cols, to.row(row) + first);
}

/// The right operand of a product as floats: as a whole if it is small, otherwise some rows at a time, so that they stay in the cache.
class RightOperand {
 public:
  explicit RightOperand(Matrix<const BFloat16> all) : all_{all}, at_once_{all.size() <= most ? all.rows : most / all.cols + 1} {}

  /// Returns the most rows at a time.
  [[nodiscard]] Index at_once() const { return at_once_; }
  /// Returns the number of floats that are needed.
  [[nodiscard]] Index size() const { return at_once_ * all_.cols; }
  void keep_in(const Cpu& cpu, float* floats) {
    floats_ = floats;
    if (at_once_ == all_.rows) convert_some(cpu, all_.data, all_.size(), floats_);
  }
  /// Calls visit(first row, some rows) for all rows in order; once if there are none.
  template <class Visit>
  void for_each(const Cpu& cpu, const Visit& visit) const {
    Index first = 0;
    do {
      const Matrix<const float> some{floats_, std::min(at_once_, all_.rows - first), all_.cols};
      if (at_once_ < all_.rows) convert_some(cpu, all_.row(first), some.size(), floats_);
      visit(first, some);
      first += some.rows;
    } while (first < all_.rows);
  }

 private:
  static constexpr Index most = 4 * FloatRows::floats_of_block;  // floats

  Matrix<const BFloat16> all_;
  Index at_once_;
  float* floats_ = nullptr;
};

constexpr Index least_rows_of_product = 512;  // of a block, so that the other operand, or the result, is read few times

/// Returns whether oneDNN has computed c (+)= left right from 16-bit numbers.
template <class Out>
bool multiply_by_onednn(const Cpu& cpu, const onednn::OperandOf<BFloat16>& left, const onednn::OperandOf<BFloat16>& right, Matrix<Out> c,
                        Index depth, bool accumulate) {
  if (!has_onednn(cpu) || !onednn::prefers_bfloat16() || c.size() == 0 || depth == 0) return false;
  return onednn::product_of_bfloat16(left, right, c, depth, accumulate, cpu.threads);
}

}  // namespace detail

PDP_INLINE void gemm(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<BFloat16> c, bool accumulate) {
  if (detail::multiply_by_onednn(cpu, {a.data, a.cols, false}, {b.data, b.cols, false}, c, a.cols, accumulate)) return;
  detail::RightOperand right{b};
  detail::FloatRows rows{cpu, a.rows, c.cols + right.at_once(), right.size(), detail::least_rows_of_product};
  right.keep_in(cpu, rows.room(right.size()));
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<float> out = accumulate ? block.copy_of(c) : block.room_for(c), room = block.room(right.at_once());
    right.for_each(cpu, [&](Index first, Matrix<const float> some) {
      const Matrix<float> left{room.data, room.rows, some.rows};
      detail::widen_columns(cpu, block.rows_of(a), first, left);
      gemm(cpu, Matrix<const float>{left}, some, out, accumulate || first > 0);
    });
    block.narrow(out, c);
  });
}
PDP_INLINE void gemm_nt(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<BFloat16> c, bool accumulate) {
  if (detail::multiply_by_onednn(cpu, {a.data, a.cols, false}, {b.data, b.cols, true}, c, a.cols, accumulate)) return;
  detail::RightOperand right{b};
  detail::FloatRows rows{cpu, a.rows, a.cols + right.at_once(), right.size(), detail::least_rows_of_product};
  right.keep_in(cpu, rows.room(right.size()));
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> left = block.widen(a);
    const Matrix<float> room = block.room(right.at_once());
    right.for_each(cpu, [&](Index first, Matrix<const float> some) {
      const Matrix<float> out{room.data, room.rows, some.rows};
      if (accumulate) detail::widen_columns(cpu, block.rows_of(c), first, out);
      gemm_nt(cpu, left, some, out, accumulate);
      detail::narrow_columns(cpu, out, block.rows_of(c), first);
    });
  });
}
PDP_INLINE void gemm_tn(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<float> c, bool accumulate) {
  if (detail::multiply_by_onednn(cpu, {a.data, a.cols, true}, {b.data, b.cols, false}, c, a.rows, accumulate)) return;
  detail::FloatRows rows{cpu, a.rows, a.cols + b.cols, 0, detail::least_rows_of_product};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> left = block.widen(a), right = block.widen(b);
    gemm_tn(cpu, left, right, c, accumulate || block.first() > 0);
  });
}

}  // namespace pdp::cpu
