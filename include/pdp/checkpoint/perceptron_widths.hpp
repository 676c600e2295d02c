#pragma once

#include <string_view>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::checkpoint {

/// Returns the widths of the nn::MultilayerPerceptron that has these parameters: the width of the samples, then the number of outputs of
/// each linear layer. Takes them from the shapes [outputs, inputs] of 0.weight, 2.weight, ... Throws FileError if there is no 0.weight, or
/// a shape does not fit. `source` names the origin of the tensors in messages.
[[nodiscard]] std::vector<Index> perceptron_widths(const std::vector<Tensor>& tensors, std::string_view source);

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/perceptron_widths.hpp>
#endif
