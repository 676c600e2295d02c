#pragma once

#include <cstdint>

#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

/// Arguments of the calls by which a Context and a DistributedOptimizer use a SubNetwork.
namespace pdp::rpc {

/// A forward call, by the context that records it and its number there.
struct CallId {
  SlotId context{};
  int number = 0;
};

/// The preparation of a step: see SubNetwork::prepare_step().
struct StepPreparation {
  SlotId context{};
  int backward_calls = 0;  // that the network must have run in this context
  bool measures = false;   // whether to add the square of this network's gradient
  bool finite = false;     // whether to throw unless the gradient is finite
};

/// A step of an optimizer.
struct StepRequest {
  SlotId context{};
  SlotId optimizer{};
  std::int64_t number = 1;  // from 1
  float lr_factor = 1;
  double clip_norm = 0;  // 0: no limit
  bool skips_non_finite = false;
};
static_assert(Travels<CallId> && Travels<StepPreparation> && Travels<StepRequest>);

}  // namespace pdp::rpc
