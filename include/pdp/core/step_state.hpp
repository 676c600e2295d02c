#pragma once

#include <cmath>
#include <cstdint>

#include <pdp/core/finite.hpp>

namespace pdp {

/// What an optimizer's rule may know of the step it is applied in.
struct StepInfo {
  std::int64_t number = 1;  // of the update, from 1
  float lr_factor = 1;      // of the learning-rate schedule
};

/// What a rule's update() wants to know of a step: the result of its constants(StepInfo), where it has that member.
template <class Rule>
constexpr auto constants(const Rule& rule, const StepInfo& step) {
  if constexpr (requires { rule.constants(step); })
    return rule.constants(step);
  else
    return step;
}

/// What a loss finds in the rows it is given. Sums, not means, so that shares of a batch add up.
struct LossSums {
  double loss = 0;
  double correct = 0;  // rows whose largest output is that of their class; 0 where there are no classes
};
static_assert(sizeof(LossSums) == 2 * sizeof(double));  // ranks add them up as two numbers

/// The numbers that the operations of a step leave for each other, in the device's memory: so that none has to wait until the host knows
/// what another has found.
struct StepNumbers {
  // What is known when the step begins.
  StepInfo info{};
  double scale = 0;       // of the gradient of a row's loss: one over the global number of rows, times the next
  double loss_scale = 1;  // what all gradients are larger by until they are applied
  // What the step finds.
  LossSums sums{};
  double square = 0;   // of the norm of the gradient
  double norm = 0;     // before the gradient is clipped; 0 where nobody has asked for it
  double factor = 1;   // that the gradient is multiplied with when it is applied
  bool skips = false;  // whether it is not applied
};

/// What losses are multiplied by so that gradients in float16 are not too small for it: by as much as possible, which is found out. The
/// scale falls when a gradient is not finite, and grows when so many steps in a row were. Micikevicius et al., "Mixed precision training",
/// ICLR 2018; the numbers are those of torch.amp.GradScaler.
struct LossScaling {
  double initial = 65536;
  double growth = 2;
  double backoff = 0.5;
  std::int64_t interval = 2000;  // steps
};

/// What a device keeps of the steps until now.
struct StepHistory {
  std::int64_t skipped = 0;  // steps that were no updates
  double loss_scale = 1;
  std::int64_t finite = 0;  // steps since the scale has changed
};

/// How apply_gradient_rule() decides.
struct GradientRule {
  double clip_norm = 0;           // 0: any
  bool skips_non_finite = false;  // steps
  bool scales = false;            // losses
  LossScaling scaling{};
};

/// Begins a step whose gradients are scaled.
template <class Numbers>  // a template, so that a device may call it
constexpr void scale_loss(Numbers& numbers, const StepHistory& history) {
  numbers.loss_scale = history.loss_scale;
  numbers.scale *= history.loss_scale;
}

/// What becomes of a gradient, as the square of its norm says: it is scaled down to a norm of `clip_norm`, as
/// torch.nn.utils.clip_grad_norm_ has it; or the step is skipped where the norm is not finite.
template <class Numbers>
constexpr void apply_gradient_rule(Numbers& numbers, StepHistory& history, const GradientRule& rule) {
  numbers.info.number -= history.skipped;
  numbers.norm = std::sqrt(numbers.square) / numbers.loss_scale;
  numbers.factor = 1 / numbers.loss_scale;
  if (rule.skips_non_finite && !is_finite(numbers.norm)) {
    numbers.skips = true;
    ++history.skipped;
    history.finite = 0;
    if (rule.scales) history.loss_scale *= rule.scaling.backoff;
    return;
  }
  if (rule.scales && ++history.finite == rule.scaling.interval) {
    history.finite = 0;
    history.loss_scale *= rule.scaling.growth;
  }
  if (const double factor = rule.clip_norm / (numbers.norm + 1e-6); rule.clip_norm != 0 && (is_nan(factor) || factor < 1))
    numbers.factor *= factor;
}

}  // namespace pdp
