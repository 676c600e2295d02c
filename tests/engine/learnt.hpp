#pragma once

#include <pdp/comm/any.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "erased.hpp"
#include "strategy/tasks.hpp"

struct Learnt {
  std::vector<double> losses;
  std::vector<float> parameters;
  friend bool operator==(const Learnt&, const Learnt&) = default;
};

/// Trains three epochs of 3 steps on one rank, and returns its losses and parameters. In each epoch, two steps have enough rows for the
/// kernels of matrix products (211), and the third is short (8 rows).
template <class Comm, class TaskType, class S>
[[nodiscard]] Learnt learn_on(Comm& world, const TaskType& task, const S& strategy) {
  const auto samples = tasks::samples(430);
  pdp::Trainer trainer{world, strategy, task, {.global_batch = 211, .seed = 3}};
  Learnt found;
  trainer.fit(
      samples, {.epochs = 3}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) { found.losses.push_back(totals.mean_loss()); });
  trainer.engine().stage().for_each_parameter(
      [&](const auto&, std::span<float> values) { found.parameters.insert(found.parameters.end(), values.begin(), values.end()); });
  return found;
}

/// Trains on all ranks. The strategy divides no layers.
template <class Comm, class TaskType>
[[nodiscard]] std::vector<Learnt> learn(const TaskType& task, pdp::strategy::StrategyRef strategy, int ranks) {
  return erased::ranks<Comm>(ranks, [&](pdp::comm::Any& world) { return learn_on(world, task, strategy); });
}
