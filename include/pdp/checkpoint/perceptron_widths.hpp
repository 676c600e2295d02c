#pragma once

#include <string_view>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::checkpoint {

/// The widths of an nn::MultilayerPerceptron whose parameters these are: of the samples, then of the outputs of each layer whose weight is
/// 0.weight, 2.weight, ... Throws FileError if there is no such tensor, or its shape does not fit. `source`: where they come from.
[[nodiscard]] std::vector<Index> perceptron_widths(const std::vector<Tensor>& tensors, std::string_view source);

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/perceptron_widths.hpp>
#endif
