#pragma once

#include <array>

#include <pdp/optim/functions.hpp>
#include <pdp/optim/optimizer.hpp>

// [lion]
/// Moves each parameter by the same distance, in the direction of an average of
/// gradients. Chen et al., "Symbolic discovery of optimization algorithms",
/// NeurIPS 2023.
struct Lion {
  float lr = 1e-4f;
  float beta1 = 0.9f;   // of the direction
  float beta2 = 0.99f;  // of the kept average
  float weight_decay = 0;

  template <class V>
  struct State {
    V average;
  };
  static constexpr std::array state_names{"exp_avg"};

  template <class V>
  constexpr void update(V& parameter, const V& gradient, State<V>& state,
                        const pdp::optim::StepInfo& step) const {
    const V mean = beta1 * state.average + (1 - beta1) * gradient;
    const V move = pdp::optim::sign(mean) + weight_decay * parameter;
    parameter = parameter - step.lr_factor * lr * move;
    state.average = beta2 * state.average + (1 - beta2) * gradient;
  }
};

static_assert(pdp::optim::Optimizer<Lion>);
// [lion]
