#pragma once

#include <pdp/parallel/divide.hpp>
#include <pdp/parallel/exchanges.hpp>
#include <pdp/parallel/single.hpp>

namespace pdp::parallel {

/// Every rank takes the whole batch and computes its part of each layer; the parts meet in sums. nn::Divided says how layers are divided.
/// Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model parallelism", arXiv:1909.08053.
struct TensorParallel {
  int accumulate = 1;  // micro-batches that a step's gradient is made from

  template <nn::Block Model, class Loss>
  [[nodiscard]] constexpr auto place(const Model& model, Place at, const Loss& loss) const {
    return divide(model, {at.rank, at.size}, loss);
  }
  /// `model`: as place() has it.
  [[nodiscard]] constexpr Plan plan(const Outline& model, Place at) const {
    constexpr int world = 0;
    return with_exchanges(model, Single{accumulate}.plan(model, {}), {at.rank, at.size}, world);
  }
};

static_assert(Strategy<TensorParallel>);

}  // namespace pdp::parallel
