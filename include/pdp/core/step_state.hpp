#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <pdp/core/finite.hpp>

namespace pdp {

/// The properties of a step that an optimizer's rule may use.
struct StepInfo {
  std::int64_t number = 1;  // number of the update, from 1
  float lr_factor = 1;      // factor of the learning-rate schedule
};

/// Returns the step argument of a rule's update(): the rule's constants(StepInfo) if it has that member, otherwise the StepInfo itself.
template <class Rule>
constexpr auto constants(const Rule& rule, const StepInfo& step) {
  if constexpr (requires { rule.constants(step); })
    return rule.constants(step);
  else
    return step;
}

/// Whether a rule's gradients are not limited by the norm of the gradient: it declares `static constexpr bool ignores_clipping = true`.
template <class Rule>
constexpr bool ignores_clipping = requires {
  requires Rule::ignores_clipping;
};

/// The results of a loss over its rows. Sums rather than means, so that shares of a batch add up.
struct LossSums {
  double loss = 0;
  double correct = 0;  // rows with the largest output at their class; 0 for a loss without classes
};
static_assert(sizeof(LossSums) == 2 * sizeof(double));  // ranks reduce them as two numbers

/// A class that no target names, since it does not fit into 32 bits.
inline constexpr std::int64_t no_class = std::numeric_limits<std::int64_t>::min();

/// Weights of classes in a cross-entropy. They lie in the device's memory.
struct ClassWeights {
  std::span<const float> of_class{};  // one for each class; none: each class weighs 1
  double sum = 0;                     // of all

  [[nodiscard]] constexpr bool any() const { return !of_class.empty(); }
};

/// Numbers in the device's memory, through which the operations of a step pass results to each other. So no operation waits until the host
/// knows the result of another.
struct StepNumbers {
  // Known when the step begins.
  StepInfo info{};
  double scale = 0;       // factor of the gradient of a row's loss: loss_scale / global number of rows that count
  double row_scale = 0;   // factor of the change of a buffer by a row: loss_scale / global number of rows
  double loss_scale = 1;  // factor that all gradients contain until they are applied
  // Computed during the step.
  LossSums sums{};
  double stops = 0;    // ranks that ask to stop the training; known when the step begins
  double saves = 0;    // ranks that are busy with a checkpoint; known when the step begins
  double ends = 0;     // ranks whose callback ends the training; known when the step begins
  double square = 0;   // squared norm of the gradient, which contains loss_scale
  double norm = 0;     // norm before clipping, without loss_scale; 0 if no norm was requested
  double factor = 1;   // factor by which the gradient is multiplied when it is applied
  bool skips = false;  // whether the gradient is not applied
};

/// Returns the factor by which a rule multiplies its gradient.
template <class Rule>
constexpr double gradient_factor(const StepNumbers& numbers) {
  return ignores_clipping<Rule> ? 1 / numbers.loss_scale : numbers.factor;
}

// Ranks add up the sums and the three numbers behind them in one call.
static_assert(offsetof(StepNumbers, stops) == offsetof(StepNumbers, sums) + sizeof(LossSums));
static_assert(offsetof(StepNumbers, saves) == offsetof(StepNumbers, stops) + sizeof(double));
static_assert(offsetof(StepNumbers, ends) == offsetof(StepNumbers, saves) + sizeof(double));

/// Scaling of losses, so that gradients do not underflow in float16. The scale adapts to be as large as possible: a gradient that is not
/// finite multiplies it by `backoff`, and `interval` finite ones in a row multiply it by `growth`. Micikevicius et al., "Mixed precision
/// training", ICLR 2018. The defaults are those of torch.amp.GradScaler.
struct LossScaling {
  double initial = 65536;
  double growth = 2;
  double backoff = 0.5;
  std::int64_t interval = 2000;  // steps
};

/// State that a device keeps between steps.
struct StepHistory {
  std::int64_t skipped = 0;  // steps without an update
  double loss_scale = 1;
  std::int64_t finite = 0;  // finite steps in a row since loss_scale changed
};

/// The options of apply_gradient_rule().
struct GradientRule {
  double clip_norm = 0;           // largest norm; 0: no limit
  bool skips_non_finite = false;  // skip steps with a gradient that is not finite
  bool scales = false;            // adapt loss_scale
  LossScaling scaling{};
};

/// Begins a step with scaled gradients: applies the current loss scale to `numbers`.
template <class Numbers>  // a template, so that device code may call it
constexpr void scale_loss(Numbers& numbers, const StepHistory& history) {
  numbers.loss_scale = history.loss_scale;
  numbers.scale *= history.loss_scale;
  numbers.row_scale *= history.loss_scale;
}

/// Decides how a gradient is applied, by its squared norm in `numbers`. Skips the step if the norm is not finite and
/// `rule.skips_non_finite` is set. Otherwise scales a gradient with a larger norm than `rule.clip_norm` down to that norm, as
/// torch.nn.utils.clip_grad_norm_ does. Adapts the loss scale if `rule.scales` is set.
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
