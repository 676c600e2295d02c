#pragma once

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/strategy/strategy_ref.hpp>

namespace pdp::strategy {

/// Data parallelism: every rank holds the whole model and takes its share of each batch. Gradients are summed over the ranks, unit by unit,
/// overlapped with backward. Li et al., "PyTorch distributed: experiences on accelerating data parallel training", VLDB 2020.
struct DataParallel {
  int accumulate = 1;              // micro-batches in a rank's share of a step
  Index unit_elements = 8 * 1024;  // minimum parameters of a unit (a bucket of gradients that is reduced as a whole)
  Index first_unit_elements = 0;   // minimum for the unit that backward finishes first, to start communication early; 0: like the others

  [[nodiscard]] constexpr Plan plan(const Outline& model, RankInWorld at) const {
    check_accumulate(accumulate);
    check_layers(model);
    constexpr int world = 0;
    const int layers = model.size();
    Plan plan{.share = {at.rank, at.size},
              .micro_batches = accumulate,
              .units = units_by_size(model, 0, layers, unit_elements, world, first_unit_elements)};
    const int units = as_int(plan.units.size());

    for (int u = 0; u < units; ++u) plan.setup.push_back(on_unit(Op::broadcast, u, world, 0));

    plan.step.push_back(collective(Op::count_start));
    for (int m = 0; m < accumulate; ++m) {
      plan.step.push_back(compute(Op::forward, m, 0, layers));
      if (m == 0) plan.step.push_back(collective(Op::count_wait));
      plan.step.push_back(compute(Op::loss, m, layers, layers));
      const bool last = m == accumulate - 1;
      if (last) plan.step.push_back(collective(Op::totals_start));
      for (int u = 0; u < units; ++u) {
        append_backward(plan.step, m, plan.units[as_size(u)].first, plan.units[as_size(u)].last, m > 0);
        if (last && !is_frozen(model, plan.units[as_size(u)])) plan.step.push_back(on_unit(Op::reduce_start, u, world));
      }
    }
    for (int u = 0; u < units; ++u) {
      if (is_frozen(model, plan.units[as_size(u)])) continue;
      plan.step.push_back(on_unit(Op::reduce_wait, u, world));
      plan.step.push_back(on_unit(Op::update, u));
    }
    plan.step.push_back(collective(Op::totals_wait));

    plan.evaluate = {compute(Op::forward, 0, 0, layers), compute(Op::loss, 0, layers, layers)};
    return plan;
  }
};

static_assert(Strategy<DataParallel>);

#ifdef PDP_SEPARATE_CORE
extern template Plan detail::plan_of<DataParallel>(const void*, const Outline&, RankInWorld);
#endif

}  // namespace pdp::strategy
