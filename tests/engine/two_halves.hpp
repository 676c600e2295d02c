#pragma once

#include <pdp/strategy/strategy.hpp>

/// A user-defined strategy for two ranks. Rank 0 has the first layers. Rank 1 has the others and sends the gradient back to rank 0.
struct TwoHalves {
  int cut = 1;  // layers of rank 0
  int micro_batches = 1;

  [[nodiscard]] constexpr pdp::plan::Plan plan(const pdp::nn::Outline& model, pdp::plan::RankInWorld at) const {
    using namespace pdp::strategy;
    const int layers = model.size();
    const bool front = at.rank == 0;
    Plan plan{.share = {0, 1}, .micro_batches = micro_batches, .units = {front ? Unit{0, cut} : Unit{cut, layers}}};
    const auto exchange = [&](Instructions& list, bool sends, Tensor tensor, int m) {
      list.push_back(message(sends ? Op::send_start : Op::receive_start, tensor, m, cut, 1 - at.rank));
      list.push_back(message(sends ? Op::send_wait : Op::receive_wait, tensor, m, cut, 1 - at.rank));
    };
    const auto forward = [&](Instructions& list, int m) {
      if (front) list.push_back(compute(Op::forward, m, 0, cut));
      exchange(list, front, Tensor::activation, m);
      if (front) return;
      list.push_back(compute(Op::forward, m, cut, layers));
      list.push_back(compute(Op::loss, m, layers, layers));
    };
    plan.step = {collective(Op::count_start), collective(Op::count_wait)};
    for (int m = 0; m < micro_batches; ++m) {
      forward(plan.step, m);
      if (front) {
        exchange(plan.step, false, Tensor::gradient, m);
        append_backward(plan.step, m, 0, cut, m > 0);
      } else {
        append_backward(plan.step, m, cut, layers, m > 0);
        exchange(plan.step, true, Tensor::gradient, m);
      }
    }
    plan.step.insert(plan.step.end(), {collective(Op::totals_start), on_unit(Op::update, 0), collective(Op::totals_wait)});
    forward(plan.evaluate, 0);
    return plan;
  }
};

static_assert(pdp::strategy::Strategy<TwoHalves>);
