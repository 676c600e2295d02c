#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/loss/counted_rows.hpp>

namespace pdp::detail {

/// The outputs and targets of rows, without the rows that a loss ignores, so that metrics do not count these either.
template <class T, class Target>
class CountingRows {
 public:
  /// `outputs`: [rows, outputs] and `targets`: [rows, target elements], both in host memory; borrowed.
  template <class Loss>
  CountingRows(const Loss& loss, Matrix<const T> outputs, std::span<const Target> targets) : outputs_{outputs}, targets_{targets} {
    if constexpr (loss::IgnoresRows<Loss>)
      if (outputs.rows > 0 && loss::counted_rows(loss, targets, outputs.rows) < outputs.rows)
        leave_out([&loss](std::span<const Target> target) { return loss.counts(target); });
  }
  CountingRows(const CountingRows&) = delete;
  CountingRows& operator=(const CountingRows&) = delete;

  [[nodiscard]] Matrix<const T> outputs() const { return outputs_; }
  [[nodiscard]] std::span<const Target> targets() const { return targets_; }

 private:
  void leave_out(const std::function<bool(std::span<const Target> target)>& counts);

  Matrix<const T> outputs_;
  std::span<const Target> targets_;
  std::vector<T> kept_outputs_;
  std::vector<Target> kept_targets_;
};

template <class T, class Target>
void CountingRows<T, Target>::leave_out(const std::function<bool(std::span<const Target> target)>& counts) {
  const std::size_t width = targets_.size() / as_size(outputs_.rows), cols = as_size(outputs_.cols);
  for (std::size_t row = 0; row < as_size(outputs_.rows); ++row) {
    const std::span<const Target> target = targets_.subspan(row * width, width);
    if (!counts(target)) continue;
    kept_targets_.insert(kept_targets_.end(), target.begin(), target.end());
    const T* const from = outputs_.row(as_index(row));
    kept_outputs_.insert(kept_outputs_.end(), from, from + cols);
  }
  outputs_ = {kept_outputs_.data(), as_index(kept_outputs_.size() / cols), outputs_.cols};
  targets_ = kept_targets_;
}

}  // namespace pdp::detail
