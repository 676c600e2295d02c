#pragma once

#include <cstdint>
#include <functional>
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

/// Returns a function that says whether a parameter has no gradient that counts: it is frozen, or a buffer. Borrows the groups.
[[nodiscard]] std::function<bool(const nn::Parameter&)> frozen_by(std::span<const optim::ParameterGroup> groups);

/// Throws ConfigError if a group has no predicate, has a factor that is negative or not finite, or chooses none of the model's parameters.
void check_groups(std::span<const optim::ParameterGroup> groups, const std::vector<nn::LayerParameter>& of_model);

/// Returns the groups, after check_groups().
[[nodiscard]] inline std::span<const optim::ParameterGroup> checked_groups(std::span<const optim::ParameterGroup> groups,
                                                                           const std::vector<nn::LayerParameter>& of_model) {
  check_groups(groups, of_model);
  return groups;
}

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

/// Returns the rule by which an optimizer updates parameters with these settings: the optimizer itself if it has no groups.
template <optim::Optimizer O>
[[nodiscard]] decltype(auto) rule_with(const O& optimizer, [[maybe_unused]] const optim::ParameterSettings& settings) {
  if constexpr (optim::has_groups<O>)
    return optim::scaled<optim::RuleOf<O>>(optimizer, settings);
  else
    return (optimizer);
}

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/parameter_settings.hpp>
#endif
