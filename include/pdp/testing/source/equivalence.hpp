#pragma once

/// Definitions for pdp/testing/equivalence.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/verify/verify.hpp>

namespace pdp::testing {

namespace detail {

PDP_INLINE double loss_difference(double loss, double reference) {
  if (!is_finite(loss) || !is_finite(reference)) return std::numeric_limits<double>::max();
  if (loss == reference) return 0;
  return std::min(std::abs(loss - reference) / std::abs(reference), std::numeric_limits<double>::max());
}

PDP_INLINE std::string nine_digits(double value) { return fmt::format("{:.9g}", value); }

PDP_INLINE std::vector<plan::Plan> checked_plans(const plan::GradientPolicy& policy, strategy::StrategyRef strategy,
                                                 const nn::Outline& outline, int ranks) {
  std::vector<plan::Plan> plans = strategy::plans_for(policy, strategy, outline, ranks);
  if (const plan::Verdict verdict = plan::verify(outline, plans); !verdict) throw PlanError{plan::explain(verdict, plans)};
  return plans;
}

}  // namespace detail

PDP_INLINE Equivalence::Equivalence(std::vector<double> single, std::vector<double> control, std::vector<std::vector<double>> by_rank,
                                    const EquivalenceOptions& options)
    : single_{std::move(single)}, control_{std::move(control)}, strategy_{by_rank.front()} {
  double drift = 0;
  for (std::size_t step = 0; step < single_.size(); ++step) {
    drift = std::max(drift, detail::loss_difference(control_[step], single_[step]));
    const bool strict = as_int(step) < options.strict_steps;
    allowed_.push_back(strict ? options.tolerance : std::max(options.tolerance, options.drift_factor * drift));
  }
  judge(by_rank);
}

PDP_INLINE void Equivalence::judge(const std::vector<std::vector<double>>& by_rank) {
  using detail::loss_difference, detail::nine_digits;
  double worst = 0;
  for (std::size_t step = 0; step < single_.size() && fault_.empty(); ++step) {
    const double found = loss_difference(strategy_[step], single_[step]);
    worst = std::max(worst, found);
    if (!is_finite(single_[step])) {
      fault_ = pdp::text("step ", step, ": the loss of Single is ", nine_digits(single_[step]), "; choose a task that can be trained");
    } else if (found > allowed_[step]) {
      fault_ =
          pdp::text("step ", step, ": the loss is ", nine_digits(strategy_[step]), ", but that of Single is ", nine_digits(single_[step]),
                    "; relative difference ", nine_digits(found), ", allowed ", nine_digits(allowed_[step]),
                    " (the control run differs by ", nine_digits(loss_difference(control_[step], single_[step])), ")");
    }
    for (std::size_t rank = 1; rank < by_rank.size() && fault_.empty(); ++rank)
      if (bits_of(by_rank[rank][step]) != bits_of(strategy_[step]))
        fault_ = pdp::text("step ", step, ": rank ", rank, " reports a loss of ", nine_digits(by_rank[rank][step]), ", but rank 0 one of ",
                           nine_digits(strategy_[step]), "; the totals are of all ranks and must be the same everywhere");
  }
  praise_ = pdp::text("in ", single_.size(), " steps the losses differ by at most ", nine_digits(worst), " of those of Single");
}

}  // namespace pdp::testing
