#pragma once

#include <cstdint>
#include <vector>

#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

/// Arguments of the calls by which a Context and a DistributedOptimizer use a SubNetwork.
namespace pdp::rpc {

/// A forward call, by the context that records it and its number there.
struct CallId {
  SlotId context{};
  int number = 0;
};

/// The backward pass of a forward call.
struct BackwardRequest {
  CallId call{};
  std::vector<int> losses{};  // numbers of the losses whose gradients it begins with
  int gradients = 0;          // of the output that backward() and add_gradient() are given
  bool needs_input = false;   // whether to return the gradient of the input
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
  float lr_factor = 1;
  double clip_norm = 0;  // 0: no limit
  bool skips_non_finite = false;
};
static_assert(Travels<CallId> && Travels<BackwardRequest> && Travels<StepPreparation> && Travels<StepRequest>);

}  // namespace pdp::rpc
