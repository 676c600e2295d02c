#pragma once

#include <cstdint>

#include <pdp/loss/loss.hpp>

namespace pdp::loss {

/// -log softmax(output)[class]. Targets are class numbers from 0.
struct CrossEntropy {
  using Target = std::int32_t;
  static constexpr bool has_classes = true;
  [[nodiscard]] constexpr Index target_elements(Index) const { return 1; }

  template <class D, class T>
  LossSums operator()(const D& device, Matrix<const T> output, std::span<const Target> classes, T scale, Matrix<T> gradient) const {
    return softmax_cross_entropy(device, output, classes, scale, gradient);
  }
};

}  // namespace pdp::loss
