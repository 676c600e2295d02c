#pragma once

/// Definitions for pdp/nn/multilayer_perceptron.hpp; see pdp/core/separate_compilation.hpp.

#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>

namespace pdp::nn::detail {

PDP_INLINE void check_perceptron(const std::vector<Index>& widths) {
  if (widths.size() < 2)
    throw ConfigError{text("a MultilayerPerceptron was given ", widths.size(), " widths; it takes at least 2, as in {784, 10}")};
  for (const Index width : widths)
    if (width < 1) throw ConfigError{text("a MultilayerPerceptron was given a width of ", width, "; each must be at least 1")};
}

}  // namespace pdp::nn::detail
