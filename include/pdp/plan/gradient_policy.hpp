#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// What becomes of a step whose gradient holds NaN or infinity. All ranks do the same, in the same step.
enum class NonFinite : std::uint8_t {
  ignore,  // it is applied like any other
  skip,    // it is not applied; the next step goes on from the same parameters
  stop     // every rank throws NonFiniteGradient, which names the rank and the tensor; no parameter is changed
};

/// What is done to the whole gradient before it is applied, whatever the strategy.
struct GradientPolicy {
  double clip_norm = 0;  // the largest norm over all parameters; a longer gradient is scaled down to it. 0: any length
  NonFinite non_finite = NonFinite::ignore;
  std::optional<LossScaling> loss_scaling{};  // of gradients of 16 bits; a step whose gradient is not finite is skipped then

  [[nodiscard]] constexpr bool needs_norm() const { return clip_norm != 0 || skips(); }
  [[nodiscard]] constexpr bool skips() const { return non_finite != NonFinite::ignore || loss_scaling; }
  [[nodiscard]] GradientRule rule() const { return {clip_norm, skips(), loss_scaling.has_value(), loss_scaling.value_or(LossScaling{})}; }
  void check() const {
    if (loss_scaling) check(*loss_scaling);
    if (!is_finite(clip_norm) || clip_norm < 0)
      throw ConfigError{text("clip_norm = ", clip_norm, " was given; it takes the largest norm that a gradient may have, or 0 for any")};
  }

 private:
  void check(const LossScaling& scaling) const {
    if (non_finite == NonFinite::stop)
      throw ConfigError{
          "a model in float16 has gradients that are not finite whenever its losses are scaled too much, and NonFinite::stop would end the "
          "training then; take NonFinite::skip, or compute in bfloat16"};
    const auto is_positive = [](double number) { return is_finite(number) && number > 0; };
    if (!is_positive(scaling.initial) || !is_finite(scaling.growth) || scaling.growth < 1 || !is_positive(scaling.backoff) ||
        scaling.backoff >= 1 || scaling.interval < 1)
      throw ConfigError{text("losses cannot be scaled by ", scaling.initial, " at first, times ", scaling.growth, " after ",
                             scaling.interval, " steps and times ", scaling.backoff,
                             " when a gradient is not finite; a scale is above 0, grows by 1 or more after 1 step or more, and falls by ",
                             "less than 1")};
  }
};

/// The same plan with the norm of the whole gradient in each step: it is known when all gradients are, so updates, and what follows from
/// them, come after it. All else comes before, so that nothing is in flight where a step ends there.
constexpr Plan with_norm(Plan plan) {
  Instructions before, after;
  std::vector<char> updated(plan.units.size(), 0);
  for (const Instruction& i : plan.step) {
    const bool of_unit = i.unit >= 0 && i.unit < as_int(plan.units.size());
    if (i.op == Op::update && of_unit) updated[as_size(i.unit)] = 1;
    const bool follows = (i.op == Op::gather_start || i.op == Op::gather_wait) && of_unit && updated[as_size(i.unit)] != 0;
    (i.op == Op::update || follows ? after : before).push_back(i);
  }
  before.push_back(collective(Op::norm_start));
  before.push_back(collective(Op::norm_wait));
  before.insert(before.end(), after.begin(), after.end());
  plan.step = std::move(before);
  return plan;
}

/// A strategy's plan, as a policy needs it.
constexpr Plan plan_for(const GradientPolicy& policy, Plan plan) { return policy.needs_norm() ? with_norm(std::move(plan)) : plan; }

static_assert(!GradientPolicy{}.needs_norm());

}  // namespace pdp::plan
