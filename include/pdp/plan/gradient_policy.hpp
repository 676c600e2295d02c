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
  void check() const;

 private:
  void check(const LossScaling& scaling) const;
};

/// The same plan with the norm of the whole gradient in each step: it is known when all gradients are, so updates, and what follows from
/// them, come after it. All else comes before, so that nothing is in flight where a step ends there.
Plan with_norm(Plan plan);

/// A strategy's plan, as a policy needs it.
Plan plan_for(const GradientPolicy& policy, Plan plan);

static_assert(!GradientPolicy{}.needs_norm());

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/plan/source/gradient_policy.hpp>
#endif
