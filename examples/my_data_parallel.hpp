#pragma once

#include <pdp/strategy/strategy.hpp>

// [strategy]
/// A user-defined data-parallel strategy. Every rank begins with rank 0's parameters. The gradients of a layer are summed over the ranks as
/// soon as backward has produced them. (Each rank divides its loss by the number of rows of all ranks, so the sum is the gradient of the
/// mean loss.)
struct MyDataParallel {
  [[nodiscard]] pdp::plan::Plan plan(const pdp::nn::Outline& model, pdp::plan::RankInWorld at) const {
    using namespace pdp::strategy;
    const int layers = model.size(), world = 0;
    Plan plan{.share = {at.rank, at.size}, .units = units_by_size(model, 0, layers, /*elements*/ 1, world)};
    plan.evaluate = {compute(Op::forward, 0, 0, layers), compute(Op::loss, 0, layers, layers)};
    plan.step = {collective(Op::count_start), compute(Op::forward, 0, 0, layers), collective(Op::count_wait),
                 compute(Op::loss, 0, layers, layers), collective(Op::totals_start)};
    const int units = static_cast<int>(plan.units.size());
    for (int u = 0; u < units; ++u) plan.setup.push_back(on_unit(Op::broadcast, u, world, /*from rank*/ 0));
    for (int u = 0; const Unit& unit : plan.units) {
      append_backward(plan.step, 0, unit.first, unit.last, /*accumulate*/ false);
      plan.step.push_back(on_unit(Op::reduce_start, u++, world));
    }
    for (int u = 0; u < units; ++u) {
      plan.step.push_back(on_unit(Op::reduce_wait, u, world));
      plan.step.push_back(on_unit(Op::update, u));
    }
    plan.step.push_back(collective(Op::totals_wait));
    return plan;
  }
};
// [strategy]
