#pragma once

#include <pdp/optim/optimizer.hpp>

/// A user-defined optimizer. Its GPU kernel is in rule.cu.
struct SignDescent {
  float lr = 0.01f;
  template <class V>
  struct State {
    V mean;
  };
  template <class V>
  constexpr void update(V& w, const V& g, State<V>& state, const pdp::optim::StepInfo& step) const {
    using std::sqrt;
    state.mean = 0.9f * state.mean + 0.1f * g;
    w = w - step.lr_factor * lr * state.mean / (sqrt(state.mean * state.mean) + 1e-8f);
  }
};
static_assert(pdp::optim::Optimizer<SignDescent>);
