#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/grouped.hpp>

/// The settings that the groups of an optimizer give to the parameters of a model.
namespace pdp::engine {

/// Returns the settings of one parameter.
[[nodiscard]] optim::ParameterSettings settings_of(std::span<const optim::ParameterGroup> groups, const nn::Parameter& parameter);

/// Throws ConfigError if a group has no predicate, has a factor that is negative or not finite, or chooses none of the model's parameters.
void check_groups(std::span<const optim::ParameterGroup> groups, const std::vector<nn::LayerParameter>& of_model);

/// Returns the settings of all parameters as numbers, which ranks compare. Throws ConfigError as check_groups() does.
[[nodiscard]] std::vector<std::int64_t> numbers_of(std::span<const optim::ParameterGroup> groups,
                                                   const std::vector<nn::LayerParameter>& of_model);

/// Returns the groups of an optimizer; none if it is a plain rule.
template <optim::Optimizer O>
[[nodiscard]] std::span<const optim::ParameterGroup> groups_of([[maybe_unused]] const O& optimizer) {
  if constexpr (optim::has_groups<O>)
    return optimizer.groups;
  else
    return {};
}

/// Returns the rule by which an optimizer updates parameters with these settings.
template <optim::Optimizer O>
[[nodiscard]] optim::RuleOf<O> rule_with(const O& optimizer, [[maybe_unused]] const optim::ParameterSettings& settings) {
  if constexpr (optim::has_groups<O>)
    return optim::scaled<optim::RuleOf<O>>(optimizer, settings);
  else
    return optimizer;
}

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/parameter_settings.hpp>
#endif
