#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pdp/optim/optimizer.hpp>

#include "support.hpp"

/// Twenty steps of an optimizer on eleven parameters, and of a published formula in double for comparison.
namespace sequence {

constexpr std::int64_t steps = 20;
constexpr pdp::Index count = 11;

template <class T = float>
std::vector<T> first_parameters() {
  return support::normal<T>(count, 1);
}
/// Returns gradients of different magnitudes, so that averages do not hide a missing correction.
template <class T = float>
std::vector<T> gradients(std::int64_t step) {
  auto values = support::normal<T>(count, static_cast<int>(100 + step));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= static_cast<T>(i % 3 == 0 ? 0.01 : static_cast<double>(i));
  return values;
}
constexpr float lr_factor(std::int64_t step) { return step % 2 == 0 ? 0.5f : 1.0f; }

/// Returns the parameters after all steps of `rule`.
template <class Rule>
std::vector<float> parameters_after(const Rule& rule) {
  constexpr std::size_t fields = pdp::optim::state_fields<Rule>;
  auto parameters = first_parameters();
  std::vector<float> state(fields * parameters.size());
  for (std::int64_t step = 1; step <= steps; ++step) {
    const auto gradient = gradients(step);
    support::update<fields>(pdp::cpu::Cpu{}, rule, pdp::StepInfo{step, lr_factor(step)}, std::span{parameters},
                            std::span<const float>{gradient}, std::span{state});
  }
  return parameters;
}

/// Returns the parameters after all steps of formula(w, g, element, step, factor), which updates w in double.
template <class Formula>
std::vector<double> expected_after(Formula&& formula) {
  const auto first = first_parameters();
  std::vector<double> parameters(first.begin(), first.end());
  for (std::int64_t step = 1; step <= steps; ++step) {
    const auto gradient = gradients(step);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      formula(parameters[i], static_cast<double>(gradient[i]), i, step, static_cast<double>(lr_factor(step)));
  }
  return parameters;
}

}  // namespace sequence
