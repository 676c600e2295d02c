#pragma once

/// Definitions for pdp/train/trainer_parameters.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/train/trainer_parameters.hpp>

namespace pdp {

PDP_INLINE std::int64_t detail::hash_of(const std::vector<nn::LayerParameter>& model) {
  std::vector<checkpoint::Tensor> tensors;
  for (const nn::LayerParameter& each : model) tensors.push_back({each.parameter.full_name(), each.parameter.file_shape(), {}, {}});
  return checkpoint::hash_of(tensors);
}

PDP_INLINE void detail::check_source(const std::vector<nn::LayerParameter>& own, int ranks, const std::vector<nn::LayerParameter>& other,
                                     int other_ranks) {
  if (ranks != other_ranks)
    throw ConfigError{text("copy_parameters() was given a trainer on a world of ", other_ranks, other_ranks == 1 ? " rank" : " ranks",
                           ", but this trainer's world has ", ranks, "; give it a trainer on the same world")};
  for (std::size_t at = 0; at < std::max(own.size(), other.size()); ++at) {
    const auto words = [at](const std::vector<nn::LayerParameter>& model) {
      if (at >= model.size()) return text("only ", model.size(), " parameters");
      const nn::Parameter& parameter = model[at].parameter;
      return text(parameter.full_name(), " of shape ", checkpoint::shape_text(parameter.file_shape()));
    };
    if (words(own) != words(other))
      throw ConfigError{text("copy_parameters() was given a trainer of another model: it has ", words(other), ", but this trainer has ",
                             words(own), "; give it a trainer of the same model")};
  }
}

}  // namespace pdp
