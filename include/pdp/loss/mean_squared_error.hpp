#pragma once

#include <pdp/loss/loss.hpp>

namespace pdp::loss {

/// The mean over a sample's outputs of (output - target)^2. Targets are vectors as wide as the output.
struct MeanSquaredError {
  using Target = float;
  static constexpr bool has_classes = false;
  [[nodiscard]] constexpr Index target_elements(Index outputs) const { return outputs; }

  template <class D, class T>
  LossSums operator()(const D& device, Matrix<const T> output, std::span<const T> targets, T scale, Matrix<T> gradient) const {
    return squared_error(device, output, Matrix<const T>{targets.data(), output.rows, output.cols}, scale, gradient);
  }
};

}  // namespace pdp::loss
