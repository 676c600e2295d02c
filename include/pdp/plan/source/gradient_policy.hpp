#pragma once

/// Definitions for pdp/plan/gradient_policy.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

PDP_INLINE Plan with_norm(Plan plan) {
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

PDP_INLINE Plan plan_for(const GradientPolicy& policy, Plan plan) { return policy.needs_norm() ? with_norm(std::move(plan)) : plan; }

PDP_INLINE void GradientPolicy::check() const {
  if (loss_scaling) check(*loss_scaling);
  if (!is_finite(clip_norm) || clip_norm < 0)
    throw ConfigError{text("clip_norm = ", clip_norm, " was given; it must be a positive finite norm, or 0 for no limit")};
}

PDP_INLINE void GradientPolicy::check(const LossScaling& scaling) const {
  if (non_finite == NonFinite::stop)
    throw ConfigError{
        "a model in float16 has gradients that are not finite whenever its losses are scaled too much, and NonFinite::stop would end the "
        "training then; use NonFinite::skip, or compute in bfloat16"};
  const auto is_positive = [](double number) { return is_finite(number) && number > 0; };
  if (!is_positive(scaling.initial) || !is_finite(scaling.growth) || scaling.growth < 1 || !is_positive(scaling.backoff) ||
      scaling.backoff >= 1 || scaling.interval < 1) {
    throw ConfigError{text("loss_scaling has initial = ", scaling.initial, ", growth = ", scaling.growth, ", interval = ", scaling.interval,
                           ", backoff = ", scaling.backoff,
                           "; all must be finite, initial above 0, growth and interval at least 1, and backoff above 0 and below 1")};
  }
}

}  // namespace pdp::plan
