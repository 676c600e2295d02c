#pragma once

/// Definitions for pdp/engine/parameter_settings.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/parameter_settings.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/grouped.hpp>

namespace pdp::engine {

namespace detail {

PDP_INLINE bool chooses(const optim::ParameterGroup& group, const nn::Parameter& parameter) {
  const std::string name = parameter.full_name(), layer = parameter.layer.str();
  return group.chooses(
      {.name = name, .layer = layer, .kind = parameter.name, .elements = parameter.file_elements(), .is_vector = parameter.cols == 0});
}

}  // namespace detail

PDP_INLINE optim::ParameterSettings settings_of(std::span<const optim::ParameterGroup> groups, const nn::Parameter& parameter) {
  optim::ParameterSettings settings{.is_frozen = parameter.layer.is_frozen()};
  for (const optim::ParameterGroup& group : groups) {
    if (!detail::chooses(group, parameter)) continue;
    settings.lr_factor *= group.lr_factor;
    settings.decay_factor *= group.decay_factor;
    settings.is_frozen = settings.is_frozen || group.is_frozen;
  }
  return settings;
}

PDP_INLINE std::function<bool(const nn::Parameter&)> frozen_by(std::span<const optim::ParameterGroup> groups) {
  return [groups](const nn::Parameter& parameter) { return parameter.is_buffer || settings_of(groups, parameter).is_frozen; };
}

PDP_INLINE void check_groups(std::span<const optim::ParameterGroup> groups, const std::vector<nn::LayerParameter>& of_model) {
  for (std::size_t number = 0; number < groups.size(); ++number) {
    const optim::ParameterGroup& group = groups[number];
    const std::string words = text("parameter group ", number, " of the optimizer (counted from 0) ");
    if (group.chooses == nullptr)
      throw ConfigError{text(words,
                             "has no predicate; set its member `chooses`, as in {.chooses = [](const pdp::optim::ParameterInfo& of) "
                             "{ return of.is_vector; }}")};
    for (const float factor : {group.lr_factor, group.decay_factor})
      if (!is_finite(factor) || factor < 0)
        throw ConfigError{text(words, "has the factor ", static_cast<double>(factor), "; give it a finite number from 0 on")};
    if (std::ranges::any_of(of_model, [&](const nn::LayerParameter& each) { return detail::chooses(group, each.parameter); })) continue;
    std::string names;
    std::size_t parameters = 0;
    for (const nn::LayerParameter& each : of_model) {
      if (each.parameter.is_copy) continue;
      if (parameters < 4) names += text(parameters == 0 ? "" : ", ", each.parameter.full_name());
      ++parameters;
    }
    throw ConfigError{text(words, "chooses none of the model's ", parameters, " parameters (", names, parameters > 4 ? ", ..." : "",
                           "); change its predicate, or leave the group out")};
  }
}

PDP_INLINE std::vector<std::int64_t> numbers_of(std::span<const optim::ParameterGroup> groups,
                                                const std::vector<nn::LayerParameter>& of_model) {
  check_groups(groups, of_model);
  std::vector<std::int64_t> numbers;
  if (groups.empty()) return numbers;
  for (const nn::LayerParameter& each : of_model) {
    const optim::ParameterSettings settings = settings_of(groups, each.parameter);
    numbers.insert(numbers.end(), {std::bit_cast<std::int32_t>(settings.lr_factor), std::bit_cast<std::int32_t>(settings.decay_factor),
                                   settings.is_frozen ? 1 : 0});
  }
  return numbers;
}

}  // namespace pdp::engine
