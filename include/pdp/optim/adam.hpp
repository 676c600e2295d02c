#pragma once

#include <array>
#include <cmath>

#include <pdp/optim/optimizer.hpp>

namespace pdp::optim {

/// The common part of Adam and AdamW: running means of the gradient and of its square, corrected for their start at zero.
struct AdamMoments {
  template <class V>
  struct State {
    V mean, square;
  };

  static constexpr std::array state_names{"exp_avg", "exp_avg_sq"};

  struct Constants {
    float rate;             // learning rate of this step
    float mean_correction;  // 1 / (1 - beta1^t)
    float root_correction;  // 1 / sqrt(1 - beta2^t)
  };

  template <class Real = double>  // a template, so that device code may call it
  static constexpr Constants constants(float lr, float beta1, float beta2, const StepInfo& step) {
    const auto left = [&step](float beta) { return 1 - std::pow(static_cast<Real>(beta), static_cast<Real>(step.number)); };
    return {lr * step.lr_factor, static_cast<float>(1 / left(beta1)), static_cast<float>(1 / std::sqrt(left(beta2)))};
  }

  template <class V>
  static constexpr void update(V& w, const V& g, State<V>& state, const Constants& step, float beta1, float beta2, float eps) {
    using std::sqrt;
    state.mean = beta1 * state.mean + (1 - beta1) * g;
    state.square = beta2 * state.square + (1 - beta2) * (g * g);
    w = w - step.rate * step.mean_correction * state.mean / (step.root_correction * sqrt(state.square) + eps);
  }
};

/// The optimizer of Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015. Weight decay, if any, is L2: added to the
/// gradient.
struct Adam {
  float lr = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float eps = 1e-8f;
  float weight_decay = 0;

  template <class V>
  using State = AdamMoments::State<V>;
  static constexpr auto state_names = AdamMoments::state_names;

  template <class Real = double>
  [[nodiscard]] constexpr AdamMoments::Constants constants(const StepInfo& step) const {
    return AdamMoments::constants<Real>(lr, beta1, beta2, step);
  }

  template <class V>
  constexpr void update(V& w, const V& g, State<V>& state, const AdamMoments::Constants& step) const {
    const V decayed = g + weight_decay * w;
    AdamMoments::update(w, decayed, state, step, beta1, beta2, eps);
  }
};

/// Adam with weight decay that is not part of the gradient. Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019.
struct AdamW {
  float lr = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float eps = 1e-8f;
  float weight_decay = 1e-2f;

  template <class V>
  using State = AdamMoments::State<V>;
  static constexpr auto state_names = AdamMoments::state_names;

  template <class Real = double>
  [[nodiscard]] constexpr AdamMoments::Constants constants(const StepInfo& step) const {
    return AdamMoments::constants<Real>(lr, beta1, beta2, step);
  }

  template <class V>
  constexpr void update(V& w, const V& g, State<V>& state, const AdamMoments::Constants& step) const {
    w = w - step.rate * weight_decay * w;
    AdamMoments::update(w, g, state, step, beta1, beta2, eps);
  }
};

}  // namespace pdp::optim
