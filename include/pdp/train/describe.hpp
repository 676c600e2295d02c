#pragma once

#include <concepts>
#include <string>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/check_output.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/nn/layer_info.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/strategy/divides.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/task.hpp>
#include <pdp/verify/describe.hpp>

namespace pdp {

namespace detail {

/// Describes what each rank would hold, send and wait for. `model`, `layers`: as the strategy divides the model.
[[nodiscard]] plan::Description describe(const nn::Outline& model, std::vector<nn::LayerInfo> layers, strategy::StrategyRef strategy,
                                         int ranks, const TrainerOptions& options, const plan::Workload& work);

/// Returns this machine as that of all ranks.
[[nodiscard]] plan::Machine this_machine(int ranks);

/// Whether all ranks of a world are known to run on one machine.
template <comm::Group C>
[[nodiscard]] bool are_on_one_machine(const C& world) {
  if constexpr (requires { world.shares_memory(); })
    if (world.shares_memory()) return true;
  return world.size() == 1;
}

}  // namespace detail

/// Describes what each of `ranks` ranks would hold, send and wait for if they trained this task. Starts no rank and allocates none of the
/// memory of a training. Throws what a Trainer throws if the strategy does not fit the model or the number of ranks. `common_memory`:
/// whether the ranks see each other's memory.
template <class TaskType, strategy::Strategy S, SupportedPrecision P = Float32>
[[nodiscard]] plan::Description describe(const TaskType& task, const S& strategy, int ranks, const TrainerOptions& options, P = {},
                                         bool common_memory = false) {
  const auto placed = strategy::placed(strategy, task.model, {0, ranks}, task.loss);
  const nn::Outline model = nn::outline(placed, input_of(task.model, options));
  engine::check_output<decltype(TaskType::loss)>(model);
  constexpr bool is_one_type =
      std::same_as<typename P::compute, typename P::master> && std::same_as<typename P::master, typename P::reduce>;
  common_memory = common_memory && is_one_type;  // otherwise gradients go by messages
  return detail::describe(model, nn::layer_infos(placed), strategy, ranks, options,
                          {.global_batch = options.global_batch,
                           .state_fields = optim::needed_state_fields(task.optimizer),
                           .common_memory = common_memory,
                           .bytes = element_bytes<P>});
}

/// Describes the ranks of `world`, taking into account whether they share memory. If all of them run on this machine, text() warns if its
/// memory does not suffice. To get the warning in other cases, set the member `machine`.
template <comm::Group C, class TaskType, strategy::Strategy S, SupportedPrecision P = Float32>
[[nodiscard]] plan::Description describe(const TaskType& task, const S& strategy, const C& world, const TrainerOptions& options, P = {}) {
  bool common_memory = false;
  if constexpr (engine::may_see_memory<C, typename P::compute, typename P::reduce>) common_memory = world.shares_memory();
  plan::Description found = describe(task, strategy, world.size(), options, P{}, common_memory);
  if (detail::are_on_one_machine(world)) found.machine = detail::this_machine(world.size());
  return found;
}

/// Does the same for ranks that compute on `device`. There is no warning if they compute in memory of the device's own.
template <comm::Group C, class TaskType, strategy::Strategy S, Device D, SupportedPrecision P = Float32>
[[nodiscard]] plan::Description describe(const TaskType& task, const S& strategy, const C& world, const TrainerOptions& options,
                                         const D& device, P precision = {}) requires requires {
  { describe(device) } -> std::convertible_to<std::string>;
}
{
  plan::Description found = describe(task, strategy, world, options, precision);
  found.device = describe(device);
  if constexpr (!D::uses_host_memory) found.machine = {};
  return found;
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/describe.hpp>
#endif
