#pragma once

/// Definitions for pdp/checkpoint/perceptron_widths.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/perceptron_widths.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::checkpoint {

PDP_INLINE std::vector<Index> perceptron_widths(const std::vector<Tensor>& tensors, std::string_view source) {
  std::vector<Index> widths;
  for (Index layer = 0;; layer += 2) {
    const std::string name = text(layer, ".weight");
    const auto weight = std::ranges::find(tensors, name, &Tensor::name);
    if (weight == tensors.end() && layer > 0) return widths;
    if (weight == tensors.end())
      throw FileError{text(source, ": expected a tensor '", name, "', found none. Is it a file of another model?")};
    if (weight->shape.size() != 2 || (layer > 0 && weight->shape[1] != widths.back()))
      throw FileError{text(source, ": expected ", name, " to be a matrix [outputs, inputs] whose inputs match the previous layer",
                           "; is it a file of another model?")};
    if (layer == 0) widths.push_back(weight->shape[1]);
    widths.push_back(weight->shape[0]);
  }
}

}  // namespace pdp::checkpoint
