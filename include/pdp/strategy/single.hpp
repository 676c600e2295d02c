#pragma once

#include <limits>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/strategy/strategy_ref.hpp>

namespace pdp::strategy {

/// One rank holds the whole model and takes the whole batch: the reference for all other strategies.
struct Single {
  int accumulate = 1;  // micro-batches in a step

  [[nodiscard]] constexpr Plan plan(const Outline& model, RankInWorld at) const {
    check_accumulate(accumulate);
    check_layers(model);
    if (at.size != 1)
      throw ConfigError{text("the strategy Single is for one rank, but the world has ", at.size,
                             "; start one rank, or choose a strategy that spreads the work")};
    const int layers = model.size();
    Plan plan{.micro_batches = accumulate, .units = units_by_size(model, 0, layers, std::numeric_limits<Index>::max())};
    plan.step.push_back(collective(Op::count_start));
    plan.step.push_back(collective(Op::count_wait));
    for (int m = 0; m < accumulate; ++m) {
      plan.step.push_back(compute(Op::forward, m, 0, layers));
      plan.step.push_back(compute(Op::loss, m, layers, layers));
      append_backward(plan.step, m, 0, layers, m > 0);
    }
    plan.step.push_back(collective(Op::totals_start));
    for (int u = 0; u < as_int(plan.units.size()); ++u)
      if (!is_frozen(model, plan.units[as_size(u)])) plan.step.push_back(on_unit(Op::update, u));
    plan.step.push_back(collective(Op::totals_wait));
    plan.evaluate = {compute(Op::forward, 0, 0, layers), compute(Op::loss, 0, layers, layers)};
    return plan;
  }
};

static_assert(Strategy<Single>);

#ifdef PDP_SEPARATE_CORE
extern template Plan detail::plan_of<Single>(const void*, const Outline&, RankInWorld);
#endif

}  // namespace pdp::strategy
