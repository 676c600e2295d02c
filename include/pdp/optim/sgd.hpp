#pragma once

#include <array>

#include <pdp/optim/optimizer.hpp>

namespace pdp::optim {

/// Stochastic gradient descent with optional momentum, Nesterov's look-ahead and L2 weight decay.
/// Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013, in PyTorch's form.
struct Sgd {
  float lr = 0.01f;  // multiplied by the schedule's factor for the step
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;

  template <class V>
  struct State {
    V velocity;
  };
  static constexpr std::array state_names{"momentum_buffer"};

  [[nodiscard]] constexpr bool keeps_state() const { return momentum != 0; }

  template <class V>
  constexpr void update(V& w, const V& g, State<V>& state, const StepInfo& step) const {
    const V decayed = g + weight_decay * w;
    state.velocity = momentum * state.velocity + decayed;
    w = w - step.lr_factor * lr * (nesterov ? decayed + momentum * state.velocity : state.velocity);
  }
};

}  // namespace pdp::optim
