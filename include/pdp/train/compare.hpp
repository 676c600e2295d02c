#pragma once

#include <string>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/train/describe.hpp>
#include <pdp/train/options.hpp>
#include <pdp/verify/comparison.hpp>

namespace pdp {

/// A strategy and its name, for compare().
struct NamedStrategy {
  std::string name;
  strategy::AnyStrategy strategy;
  int ranks = 0;  // 0: as many as compare() is given
};

/// Returns the strategies among which a program usually chooses, on this many ranks, each named by the code that makes it.
[[nodiscard]] std::vector<NamedStrategy> usual_strategies(int ranks);

/// Describes several strategies for one task, so that text() of the result shows them in one table: memory, messages and idle time. Starts
/// no rank. A strategy that does not fit the model or the number of ranks is listed with the reason. `common_memory`: whether the ranks see
/// each other's memory.
///
///     fmt::print("{}\n", pdp::compare(task, {{"ZeRO", Zero{.stage = 2}}, {"1F1B", Pipeline<>{.micro_batches = 8}}}, 4, options).text());
template <class TaskType, SupportedPrecision P = Float32>
[[nodiscard]] plan::Comparison compare(const TaskType& task, const std::vector<NamedStrategy>& strategies, int ranks,
                                       const TrainerOptions& options, P precision = {}, bool common_memory = false) {
  static_cast<void>(input_of(task.model, options));  // throws for all strategies
  plan::Comparison compared;
  for (const NamedStrategy& each : strategies) {
    auto& entry = compared.entries.emplace_back(plan::Comparison::Entry{.name = each.name});
    try {
      entry.description = describe(task, each.strategy, each.ranks == 0 ? ranks : each.ranks, options, precision, common_memory);
    } catch (const Error& error) {
      entry.problem = error.what();
    }
  }
  return compared;
}

/// Compares strategies for the ranks of `world`, taking into account whether they share memory. If all of them run on this machine, text()
/// warns of strategies for which its memory does not suffice.
template <comm::Group C, class TaskType, SupportedPrecision P = Float32>
[[nodiscard]] plan::Comparison compare(const TaskType& task, const std::vector<NamedStrategy>& strategies, const C& world,
                                       const TrainerOptions& options, P precision = {}) {
  bool common_memory = false;
  if constexpr (engine::may_see_memory<C, typename P::compute, typename P::reduce>) common_memory = world.shares_memory();
  plan::Comparison compared = compare(task, strategies, world.size(), options, precision, common_memory);
  if (detail::are_on_one_machine(world))
    for (auto& entry : compared.entries) entry.description.machine = detail::this_machine(as_int(entry.description.ranks.size()));
  return compared;
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/compare.hpp>
#endif
