#pragma once

#include <algorithm>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu::detail {

/// Returns memory for `count` floats, which is valid until the thread calls this again. The thread keeps it, so that a step allocates
/// nothing after the first.
float* floats_of_thread(const Cpu& cpu, Index count);

/// Computes to = from for `count` numbers, rounded if `to` has 16 bits.
void convert_some(const Cpu& cpu, const BFloat16* from, Index count, float* to);
void convert_some(const Cpu& cpu, const float* from, Index count, BFloat16* to);

/// Some rows of matrices of 16-bit numbers, with memory for them as floats.
class FloatBlock {
 public:
  FloatBlock(const Cpu& cpu, Index first, Index count, float* memory) : cpu_{&cpu}, first_{first}, count_{count}, memory_{memory} {}

  [[nodiscard]] Index first() const { return first_; }
  [[nodiscard]] Index count() const { return count_; }
  /// Returns these rows of a matrix.
  template <class T>
  [[nodiscard]] Matrix<T> rows_of(Matrix<T> all) const {
    return {all.data + first_ * all.cols, count_, all.cols};
  }
  /// Returns memory for `cols` floats of each of these rows.
  [[nodiscard]] Matrix<float> room(Index cols) {
    float* const at = memory_;
    memory_ += count_ * cols;
    return {at, count_, cols};
  }
  /// Returns memory for these rows as floats; empty if the matrix is.
  [[nodiscard]] Matrix<float> room_for(Matrix<const BFloat16> all) { return all.data == nullptr ? Matrix<float>{} : room(all.cols); }
  /// Returns these rows as floats.
  [[nodiscard]] Matrix<const float> widen(Matrix<const BFloat16> all) { return copy_of(all); }
  /// Returns the same, for an operation that changes them.
  [[nodiscard]] Matrix<float> copy_of(Matrix<const BFloat16> all) {
    const Matrix<float> floats = room(all.cols);
    convert_some(*cpu_, rows_of(all).data, floats.size(), floats.data);
    return floats;
  }
  /// Rounds floats into these rows of a matrix. Does nothing if the matrix is empty.
  void narrow(Matrix<const float> floats, Matrix<BFloat16> all) const {
    if (all.data != nullptr) convert_some(*cpu_, floats.data, floats.size(), rows_of(all).data);
  }

 private:
  const Cpu* cpu_;
  Index first_, count_;
  float* memory_;
};

/// The floats of an operation on 16-bit numbers: whole arrays, such as weights, and some rows at a time of its matrices.
class FloatRows {
 public:
  // The length of blocks does not depend on the number of threads, and so no sum does.
  static constexpr Index floats_of_block = 64 * 1024;

  /// `floats_of_row`: those of one row in all matrices. `floats_of_arrays`: those of all arrays. `least`: rows of a block, unless there are
  /// fewer.
  FloatRows(const Cpu& cpu, Index rows, Index floats_of_row, Index floats_of_arrays = 0, Index least = 1)
      : cpu_{&cpu},
        rows_{rows},
        at_once_{std::min(std::max(floats_of_block / std::max<Index>(floats_of_row, 1), least), std::max<Index>(rows, 1))},
        memory_{floats_of_thread(cpu, floats_of_arrays + at_once_ * floats_of_row)} {}

  /// Returns memory for an array.
  [[nodiscard]] float* room(Index count) {
    float* const floats = memory_;
    memory_ += count;
    return floats;
  }
  /// Returns the array as floats; null if it is null.
  [[nodiscard]] const float* widen(const BFloat16* array, Index count) {
    if (array == nullptr) return nullptr;
    float* const floats = room(count);
    convert_some(*cpu_, array, count, floats);
    return floats;
  }

  /// Calls visit(block) for blocks that together have all rows, in order; once, with no rows, if there are none. Call this last.
  template <class Visit>
  void for_each_block(const Visit& visit) const {
    Index first = 0;
    do {
      FloatBlock block{*cpu_, first, std::min(at_once_, rows_ - first), memory_};
      visit(block);
      first += at_once_;
    } while (first < rows_);
  }

 private:
  const Cpu* cpu_;
  Index rows_, at_once_;
  float* memory_;
};

}  // namespace pdp::cpu::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/float_rows.hpp>
#endif
