#pragma once

#include <pdp/loss/loss.hpp>

namespace pdp::loss {

/// The mean over a sample's outputs of (output - target)^2. Targets are vectors as wide as the output, of doubles if the output is.
struct MeanSquaredError {
  using Target = float;
  static constexpr bool has_classes = false;
  [[nodiscard]] constexpr Index target_elements(Index outputs) const { return outputs; }

  template <class D, class T>
  void operator()(const D& device, Matrix<const T> output, std::span<const Accumulated<T>> targets, const double* scale, Matrix<T> gradient,
                  LossSums* sums) const {
    squared_error(device, output, Matrix<const Accumulated<T>>{targets.data(), output.rows, output.cols}, scale, gradient, sums);
  }
};

}  // namespace pdp::loss
