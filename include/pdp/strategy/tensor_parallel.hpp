#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/exchanges.hpp>
#include <pdp/strategy/divides.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/strategy_ref.hpp>

namespace pdp::strategy {

/// Tensor parallelism: every rank takes the whole batch and computes its part of each divided layer; sums over the ranks combine the
/// results. nn::Divided says how layers are divided. Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using
/// model parallelism", arXiv:1909.08053.
struct TensorParallel {
  int accumulate = 1;  // micro-batches in a step

  [[nodiscard]] constexpr nn::Part part(RankInWorld at) const { return {at.rank, at.size}; }
  /// `model`: the outline of the divided model.
  [[nodiscard]] constexpr Plan plan(const Outline& model, RankInWorld at) const {
    constexpr int world = 0;
    return with_exchanges(model, Single{accumulate}.plan(model, {}), part(at), world);
  }
};

static_assert(Divides<TensorParallel>);

#ifdef PDP_SEPARATE_CORE
extern template Plan detail::plan_of<TensorParallel>(const void*, const Outline&, RankInWorld);
#endif

}  // namespace pdp::strategy
