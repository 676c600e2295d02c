#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::loss {

/// Whether a loss acts on the last dimension of the output: of [positions, classes], each position is a row of the loss, with a target of
/// its own. It declares `static constexpr bool acts_on_last_dimension = true`. Means are then over positions. For other losses a sample is
/// one row.
template <class L>
constexpr bool acts_on_last_dimension = requires {
  requires L::acts_on_last_dimension;
};

/// The rows of a loss in the output of one sample.
struct OutputRows {
  Index count = 1;
  Index outputs = 0;  // values of each

  /// Returns the number of targets of a sample.
  template <class L>
  [[nodiscard]] constexpr Index target_elements(const L& loss) const {
    return count * loss.target_elements(outputs);
  }
  /// Returns the outputs of samples as rows of the loss, which may have some columns of each.
  template <class T>
  [[nodiscard]] constexpr Matrix<T> of(Matrix<T> samples) const {
    return {samples.data, samples.rows * count, samples.cols / count};
  }
};

/// Returns the rows of a loss in an output of this shape.
template <class L>
[[nodiscard]] constexpr OutputRows output_rows(const Shape& output) {
  if (!acts_on_last_dimension<L> || output.rank() < 2 || output.last() < 1) return {1, output.elements()};
  return {output.elements() / output.last(), output.last()};
}

static_assert(OutputRows{3, 5}.of(Matrix<const float>{nullptr, 2, 15}).rows == 6);

}  // namespace pdp::loss
