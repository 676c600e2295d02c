#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/rpc/network/requests.hpp>

namespace pdp::rpc {

/// The state of an optimizer for some parameters on one device, and the numbers of its current step.
template <class D>
class OptimizerState {
 public:
  OptimizerState(const D& device, Index elements)
      : values_{allocate<float>(device, elements)}, numbers_{allocate<StepNumbers>(device, 1)}, history_{allocate<StepHistory>(device, 1)} {
    store(device, StepHistory{}, history_.data());
  }

  /// Updates parameters with the sum of the gradients, added in this order; each is as long as `parameters`. `square`: the squared norm of
  /// the whole gradient; 0 if it is not needed.
  template <class Rule>
  void apply(const D& device, const Rule& rule, const StepRequest& step, double square, std::span<float> parameters,
             std::span<const float* const> gradients) {
    using pdp::apply_gradient_rule;
    StepNumbers numbers{.info = {++steps_, step.lr_factor}};
    numbers.square = square;
    store(device, numbers, numbers_.data());
    if (step.clip_norm != 0 || step.skips_non_finite)
      apply_gradient_rule(device, numbers_.data(), history_.data(),
                          GradientRule{.clip_norm = step.clip_norm, .skips_non_finite = step.skips_non_finite});
    update<optim::state_fields<Rule>>(device, rule, numbers_.data(), parameters, gradients, values_.span());
  }

 private:
  DeviceMemory<D, float> values_;
  DeviceMemory<D, StepNumbers> numbers_;
  DeviceMemory<D, StepHistory> history_;
  std::int64_t steps_ = 0;  // of these parameters, which may have been left out of some steps of the optimizer
};

}  // namespace pdp::rpc
