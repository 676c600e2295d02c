#pragma once

#include <concepts>
#include <string>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/check_output.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/strategy/divides.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/task.hpp>
#include <pdp/verify/describe.hpp>

namespace pdp {

namespace detail {

/// Describes what each rank would hold, send and wait for. `whole` is the model before the strategy divides it.
[[nodiscard]] plan::Description describe(const nn::Outline& whole, const nn::Outline& model, strategy::StrategyRef strategy, int ranks,
                                         const TrainerOptions& options, const plan::Workload& work);

}  // namespace detail

/// Describes what each of `ranks` ranks would hold, send and wait for if they trained this task. Starts no rank and allocates none of the
/// memory of a training. Throws what a Trainer throws if the strategy does not fit the model or the number of ranks. `common_memory`:
/// whether the ranks see each other's memory.
template <class TaskType, strategy::Strategy S, SupportedPrecision P = Float32>
[[nodiscard]] plan::Description describe(const TaskType& task, const S& strategy, int ranks, const TrainerOptions& options, P = {},
                                         bool common_memory = false) {
  const Shape input = input_of(task.model, options);
  const nn::Outline whole = nn::outline(task.model, input),
                    model = nn::outline(strategy::placed(strategy, task.model, {0, ranks}, task.loss), input);
  engine::check_output<decltype(TaskType::loss)>(model);
  common_memory = common_memory && std::same_as<typename P::compute, typename P::reduce>;  // otherwise gradients go by messages
  return detail::describe(whole, model, strategy, ranks, options,
                          {.global_batch = options.global_batch,
                           .state_fields = optim::needed_state_fields(task.optimizer),
                           .common_memory = common_memory,
                           .bytes = element_bytes<P>});
}

/// Describes the ranks of `world`, taking into account whether they share memory.
template <comm::Group C, class TaskType, strategy::Strategy S, SupportedPrecision P = Float32>
[[nodiscard]] plan::Description describe(const TaskType& task, const S& strategy, const C& world, const TrainerOptions& options, P = {}) {
  bool common_memory = false;
  if constexpr (engine::may_see_memory<C, typename P::compute, typename P::reduce>) common_memory = world.shares_memory();
  return describe(task, strategy, world.size(), options, P{}, common_memory);
}

/// Does the same for ranks that compute on `device`.
template <comm::Group C, class TaskType, strategy::Strategy S, Device D, SupportedPrecision P = Float32>
[[nodiscard]] plan::Description describe(const TaskType& task, const S& strategy, const C& world, const TrainerOptions& options,
                                         const D& device, P precision = {}) requires requires {
  { describe(device) } -> std::convertible_to<std::string>;
}
{
  plan::Description found = describe(task, strategy, world, options, precision);
  found.device = describe(device);
  return found;
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/describe.hpp>
#endif
