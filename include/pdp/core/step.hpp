#pragma once

#include <cmath>
#include <cstdint>

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
  double scale = 0;  // of the gradient of a row's loss: one over the global number of rows
  // What the step finds.
  LossSums sums{};
  double square = 0;   // of the norm of the gradient
  double norm = 0;     // before the gradient is clipped; 0 where nobody has asked for it
  double factor = 1;   // that the gradient is multiplied with when it is applied
  bool skips = false;  // whether it is not applied
};

/// What becomes of a gradient, as the square of its norm says: it is scaled down to a norm of `clip_norm`, unless that is 0, as
/// torch.nn.utils.clip_grad_norm_ has it; or the step is skipped where the norm is not finite and `skips_non_finite`. `skipped` counts such
/// steps, which are no updates.
template <class Numbers>  // a template, so that a device may call it
constexpr void judge(Numbers& numbers, std::int64_t& skipped, double clip_norm, bool skips_non_finite) {
  numbers.info.number -= skipped;
  numbers.norm = std::sqrt(numbers.square);
  if (skips_non_finite && !std::isfinite(numbers.norm)) {
    numbers.skips = true;
    ++skipped;
    return;
  }
  if (const double factor = clip_norm / (numbers.norm + 1e-6); clip_norm != 0 && !(factor >= 1)) numbers.factor = factor;
}

}  // namespace pdp
