#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// The handling of a step with NaN or infinity in its gradient or loss. All ranks do the same, in the same step. `skip` and `stop` take the
/// norm of the gradient in every step; the other two cost nothing.
enum class NonFinite : std::uint8_t {
  ignore,       // the step is applied like any other
  skip,         // a step with such a gradient is not applied; the next step continues from the same parameters
  stop,         // at such a gradient, every rank throws NonFiniteGradient, which names the rank and the tensor; no parameter is changed
  stop_on_loss  // after a step with such a loss, every rank throws NonFiniteLoss, which names the rank and the tensor
};

/// The treatment of the whole gradient before it is applied, independent of the strategy. check() throws ConfigError if a field is out of
/// range.
struct GradientPolicy {
  double clip_norm = 0;  // maximum norm over all parameters; a gradient with a larger norm is scaled down to it. 0: no limit
  NonFinite non_finite = NonFinite::ignore;
  std::optional<LossScaling> loss_scaling{};  // for models in float16; skips steps whose gradient is not finite

  [[nodiscard]] constexpr bool needs_norm() const { return clip_norm != 0 || skips(); }
  [[nodiscard]] constexpr bool skips() const { return non_finite == NonFinite::skip || non_finite == NonFinite::stop || loss_scaling; }
  [[nodiscard]] GradientRule rule() const { return {clip_norm, skips(), loss_scaling.has_value(), loss_scaling.value_or(LossScaling{})}; }
  void check() const;

 private:
  void check(const LossScaling& scaling) const;
};

/// Adds the norm of the whole gradient to each step of a plan. The norm comes after all gradients. Updates, and the gathers that follow
/// them, come after the norm. All other instructions come before it, so nothing is in flight if the step ends there.
Plan with_norm(Plan plan);

/// Returns with_norm(plan) if the policy needs the norm, else the plan itself.
Plan plan_for(const GradientPolicy& policy, Plan plan);

static_assert(!GradientPolicy{}.needs_norm() && !GradientPolicy{.non_finite = NonFinite::stop_on_loss}.needs_norm());

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/plan/source/gradient_policy.hpp>
#endif
