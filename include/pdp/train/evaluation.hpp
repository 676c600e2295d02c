#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/converted.hpp>
#include <pdp/core/number_view.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/metric/states.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/dataset_checks.hpp>
#include <pdp/train/dataset_chunks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/loss_watch.hpp>
#include <pdp/train/saver.hpp>

namespace pdp::detail {

/// Whether a rank evaluates its rows without messages of other ranks.
[[nodiscard]] constexpr bool evaluates_alone(const plan::Plan& plan) {
  const auto is_compute = [](const plan::Instruction& i) { return i.op == plan::Op::forward || i.op == plan::Op::loss; };
  return std::ranges::all_of(plan.evaluate, is_compute);
}

/// Returns an engine's outputs for any number of rows, in chunks that its memory is for. Ranks that predict together make the same number
/// of calls. `inputs`: values of a row.
template <comm::Communicator C, class Engine>
[[nodiscard]] std::vector<typename Engine::Output> predict(C& world, Engine& engine, const plan::Plan& plan,
                                                           typename Converted<typename Engine::Sample>::Given x, Index inputs,
                                                           Converted<typename Engine::Sample>& converted) {
  std::vector<typename Engine::Output> outputs;
  const Index rows = samples_in(x.size(), inputs), chunk = engine.evaluation_rows();
  Index chunks = (rows + chunk - 1) / chunk;
  if (!evaluates_alone(plan)) engine::HostCalls{world, engine.stage().device()}.all_reduce(std::span{&chunks, 1}, comm::Max{});
  for (Index number = 0; number < chunks; ++number) {
    const Index first = std::min(number * chunk, rows), count = std::min(chunk, rows - first);
    const auto given = converted(part_of(x, as_size(first * inputs), as_size(count * inputs)));
    const auto part = engine.predict({given.data(), count, inputs}).values();
    outputs.insert(outputs.end(), part.begin(), part.end());
  }
  return outputs;
}

/// A rank's part of a model, as the evaluation of a dataset uses it. `Sample`, `Target`: the elements of the dataset.
template <class Sample, class Target>
struct EvaluatedModel {
  Index rows = 0;     // that evaluate() takes at most
  Index outputs = 0;  // of a row of the loss
  /// Evaluates samples. Returns the totals of the rows for which this rank computes the loss.
  std::function<engine::Totals(std::span<const Sample> x, std::span<const Target> targets, std::span<const Index> samples)> evaluate;
  /// Adds the outputs of the samples that evaluate() had last to the states of metrics.
  std::function<void(metric::States& states, std::span<const Target> targets)> add_outputs;
};

/// Returns the totals over a dataset, of which this rank evaluates its share, and the metrics. `division`: how the dataset lies on the
/// ranks. If a rank is asked to stop, it leaves the rest out, unless other ranks wait for it there. All ranks then stop: `saver` saves a
/// checkpoint and throws Stopped. `watch` reports a loss that is not finite. `steps`: those of the training so far.
template <comm::Communicator C, class D, class T, class Sample, class Target>
[[nodiscard]] Evaluation evaluate(C& world, const D& device, const EvaluatedModel<Sample, Target>& model,
                                  const data::DatasetView<Target, Sample>& data, const DataDivision& division, const plan::Plan& plan,
                                  Saver<C, D, T>& saver, const checkpoint::Position& at, std::span<const metric::Any> metrics,
                                  LossWatch& watch, std::int64_t steps) {
  std::array<double, 6> sums{};
  metric::States states{metrics, model.outputs};
  for (DatasetChunks chunks{data, division.rows_of(plan.share), division.most_rows(plan.share.count), model.rows}; chunks.next();) {
    if (saver.is_asked_to_stop() && evaluates_alone(plan)) break;
    const engine::Totals totals = model.evaluate(chunks.inputs(), chunks.targets(), chunks.samples());
    sums[0] += totals.loss;
    sums[1] += totals.correct;
    sums[2] += totals.rows;
    sums[3] += totals.ignored;
    sums[4] += totals.weight;
    if (!metrics.empty()) model.add_outputs(states, chunks.targets());
  }
  sums[5] = saver.is_asked_to_stop() ? 1 : 0;
  engine::HostCalls{world, device}.all_reduce(std::span<double>{sums}, comm::Sum{});
  if (sums[5] > 0) saver.stop(at);
  watch.take_evaluation(sums[0], steps);
  if (!metrics.empty() && world.size() > 1) {
    std::vector<double> all(states.own().size() * as_size(world.size()));
    engine::HostCalls{world, device}.all_gather(states.own(), std::span{all});
    states.set_all(all);
  }
  return {{.loss = sums[0], .correct = sums[1], .rows = sums[2], .ignored = sums[3], .weight = sums[4]}, states.results()};
}

}  // namespace pdp::detail
