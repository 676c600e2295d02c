#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/converted.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/engine/engine.hpp>
#include <pdp/engine/world.hpp>
#include <pdp/strategy/divides.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/task.hpp>

namespace pdp::testing {

/// The samples of one global batch, row after row: inputs [rows, values of a sample] and targets [rows, values of a target].
template <class Target, class Sample = float>
struct GlobalBatch {
  std::vector<Sample> x;
  std::vector<Target> targets;
};

/// The options of serial_equivalence().
struct EquivalenceOptions {
  int steps = 40;                   // training steps of each run
  Index global_batch = 32;          // no batch may have more rows than this
  std::uint64_t seed = 1;           // for the initial parameters and the order of samples
  Shape input{};                    // shape of a sample; needed only if the model takes any width
  int strict_steps = 20;            // number of first steps in which the losses must agree within the tolerance
  double tolerance = 1e-5;          // relative
  double drift_factor = 10;         // see Equivalence
  plan::GradientPolicy gradient{};  // of all runs
};

/// The result of serial_equivalence(): a loss for each step and run, and an error message if the losses do not agree.
///
/// Sums in another order differ in their last bits, and training amplifies that. So the reference runs a second time as a control, with the
/// rows of each batch permuted, which changes only the order of sums. The first strict_steps steps must agree within the tolerance. A later
/// step may differ by drift_factor times the largest difference of the control run so far, or by the tolerance if that is more.
///
/// A model with Relu may fail in the first steps although nothing is wrong. If the input of a Relu is within rounding of 0, two orders of
/// sums give two different gradients. Such a model passes with another seed; a real error does not.
class Equivalence {
 public:
  /// `single`: the loss of each step with Single. `control`: that of the control run. `by_rank`: for each rank, that of the strategy.
  Equivalence(std::vector<double> single, std::vector<double> control, std::vector<std::vector<double>> by_rank,
              const EquivalenceOptions& options);

  /// Returns whether the losses agree.
  explicit operator bool() const { return fault_.empty(); }
  /// Returns what is wrong: the step, both losses, their difference, and the difference that is allowed. If nothing is wrong, returns how
  /// close the losses stayed.
  [[nodiscard]] const std::string& text() const { return fault_.empty() ? praise_ : fault_; }

  /// Return the loss of each step: with Single, in the control run, and with the strategy (as rank 0 reports it).
  [[nodiscard]] const std::vector<double>& single() const { return single_; }
  [[nodiscard]] const std::vector<double>& control() const { return control_; }
  [[nodiscard]] const std::vector<double>& strategy() const { return strategy_; }
  /// Returns the relative difference that is allowed in each step.
  [[nodiscard]] const std::vector<double>& allowed() const { return allowed_; }

 private:
  void judge(const std::vector<std::vector<double>>& by_rank);

  std::vector<double> single_, control_, strategy_;
  std::vector<double> allowed_;
  std::string fault_, praise_;
};

/// A function that returns the global batch of a step. All ranks call it concurrently, and it must return the same batch to each.
template <class Target, class Sample = float>
using Batches = std::function<GlobalBatch<Target, Sample>(int step)>;
/// The same for a task.
template <class TaskType>
using BatchesFor = Batches<typename decltype(TaskType::loss)::Target, nn::SampleOf<decltype(TaskType::model), float>>;

namespace detail {

/// Returns the rows of a batch in a random order, which is the same on every rank.
template <class Target, class Sample>
GlobalBatch<Target, Sample> permuted(const GlobalBatch<Target, Sample>& batch, Index rows, int step) {
  std::vector<std::size_t> order(as_size(rows));
  std::iota(order.begin(), order.end(), std::size_t{0});
  random::Stream stream{random::make_key(0, "order of rows", step)};
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[stream.below(left)]);
  GlobalBatch<Target, Sample> other;
  const auto append_row = [&order](const auto& from, auto& to, std::size_t row) {
    const std::size_t width = from.size() / order.size();
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(row * width);
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(width));
  };
  for (const std::size_t row : order) {
    append_row(batch.x, other.x, row);
    append_row(batch.targets, other.targets, row);
  }
  return other;
}

/// The part of a global batch that one rank takes.
template <class Target, class Sample>
struct ShareOfBatch {
  Matrix<const Sample> x;
  std::span<const Target> targets;
  Index global_rows = 0;
};
template <class Target, class Sample>
ShareOfBatch<Target, Sample> share_of(const GlobalBatch<Target, Sample>& batch, const data::Shard& shard, Index width) {
  const Index rows = as_index(batch.x.size()) / width, target_width = rows > 0 ? as_index(batch.targets.size()) / rows : 0;
  const data::Rows share = data::shard_rows(rows, shard);
  return {{batch.x.data() + share.first * width, share.size(), width},
          std::span<const Target>{batch.targets}.subspan(as_size(share.first * target_width), as_size(share.size() * target_width)),
          rows};
}

/// The plans of all ranks, and the model as each rank holds it.
template <nn::Block Model>
struct Spread {
  std::vector<Model> models;
  std::vector<plan::Plan> plans;
};

/// Returns the plans of all ranks. Throws PlanError if they are not sound.
[[nodiscard]] std::vector<plan::Plan> checked_plans(const plan::GradientPolicy& policy, strategy::StrategyRef strategy,
                                                    const nn::Outline& outline, int ranks);

template <class TaskType, strategy::Strategy S>
auto spread_over(const TaskType& task, const Shape& input, const S& strategy, int ranks, const plan::GradientPolicy& policy) {
  Spread<decltype(strategy::placed(strategy, task.model, {}, task.loss))> spread;
  for (int rank = 0; rank < std::max(ranks, 1); ++rank)
    spread.models.push_back(strategy::placed(strategy, task.model, {rank, ranks}, task.loss));
  spread.plans = checked_plans(policy, strategy, nn::outline(spread.models.front(), input), ranks);
  return spread;
}

/// Trains on one rank. Returns the mean loss of each step before its update. `permute`: whether the rows of each batch are permuted.
template <SupportedPrecision P, class Comm, nn::Block Model, class TaskType>
std::vector<double> losses_on(Comm& world, const Spread<Model>& spread, const TaskType& task, const Shape& input,
                              const BatchesFor<TaskType>& batches, const EquivalenceOptions& options, bool permute) {
  const plan::Plan& plan = spread.plans[as_size(world.rank())];
  const engine::Limits limits{.rows = (options.global_batch + plan.share.count - 1) / plan.share.count, .seed = options.seed};
  using Engine = engine::Engine<Comm, nn::LeafTypes<Model>, decltype(TaskType::loss), decltype(TaskType::optimizer), P>;
  Engine engine{world, plan, spread.models[as_size(world.rank())], input, task.loss, task.optimizer, limits, options.gradient};
  pdp::detail::Converted<typename Engine::Sample> samples{limits.rows * input.elements()};
  pdp::detail::Converted<typename Engine::Target> own_targets{0};
  std::vector<double> losses;
  for (int step = 0; step < options.steps; ++step) {
    auto batch = batches(step);
    if (permute) batch = permuted(batch, as_index(batch.x.size()) / input.elements(), step);
    const auto [x, targets, rows] = share_of(batch, plan.share, input.elements());
    const Matrix<const typename Engine::Sample> given{samples(x.values()).data(), x.rows, x.cols};
    losses.push_back(engine.step({given, own_targets(targets), rows}, task.schedule.factor(step)).mean_loss());
  }
  return losses;
}

/// Returns the losses of each rank. As in a Trainer, an engine calls most communicators through comm::Any, so it is compiled once for
/// these.
template <comm::Communicator C, SupportedPrecision P, nn::Block Model, class TaskType>
std::vector<std::vector<double>> losses(const Spread<Model>& spread, const TaskType& task, const Shape& input,
                                        const BatchesFor<TaskType>& batches, const EquivalenceOptions& options, bool permute) {
  return ranks<C>(as_int(spread.plans.size()), [&](C& world) {
    engine::World<C, cpu::Cpu> calls{world};
    return losses_on<P>(*calls, spread, task, input, batches, options, permute);
  });
}

/// Returns the batches of a dataset, with the samples in the order of a Trainer. Borrows the dataset.
template <data::Dataset Data>
Batches<typename Data::Target, data::SampleOf<Data>> batches_of(const Data& data, Index global_batch, std::uint64_t seed) {
  return [&data, global_batch, seed](int step) {
    data::Sampler sampler{data.size(), global_batch, seed};
    sampler.start(step / sampler.steps());
    const auto which = sampler.batch(step % sampler.steps());
    GlobalBatch<typename Data::Target, data::SampleOf<Data>> batch{
        std::vector<data::SampleOf<Data>>(which.size() * as_size(data.sample_shape().elements())),
        std::vector<typename Data::Target>(which.size() * as_size(data.target_shape().elements()))};
    data::gather_in_epoch(data, which, batch.x, batch.targets, {.seed = seed, .number = sampler.epoch()});
    return batch;
  };
}

}  // namespace detail

/// Trains a task on the same global batches three times: with Single, with Single and the rows of each batch permuted, and with a strategy
/// on `size` ranks that are connected by C. Throws ConfigError if options.input is needed and missing, and PlanError if the plans are not
/// sound. Rethrows the exception of a rank that fails. `precision`: element types, such as Float64{}, which allows a small tolerance.
///
///   const auto report = testing::serial_equivalence<comm::Tcp>(task, batches, strategy::DataParallel{}, 4);
///   if (!report) std::cerr << report.text();
template <comm::Communicator C, class TaskType, strategy::Strategy S, SupportedPrecision P = Float32>
Equivalence serial_equivalence(const TaskType& task, const BatchesFor<TaskType>& batches, const S& strategy, int size,
                               const EquivalenceOptions& options = {}, P /*precision*/ = {}) {
  const Shape input = options.input.known() ? options.input : Shape{nn::input_elements(task.model)};
  if (input.elements() == 0)
    throw ConfigError{
        "the model takes samples of several shapes; set input to theirs, as in {.input = Shape{784}} or {.input = Shape{1, 28, 28}}"};
  const auto single = detail::spread_over(task, input, strategy::Single{}, 1, options.gradient);
  const auto spread = detail::spread_over(task, input, strategy, size, options.gradient);
  return {detail::losses<C, P>(single, task, input, batches, options, false).front(),
          detail::losses<C, P>(single, task, input, batches, options, true).front(),
          detail::losses<C, P>(spread, task, input, batches, options, false), options};
}

/// As above, with batches from a dataset, in the order in which a Trainer takes the samples.
template <comm::Communicator C, class TaskType, data::Dataset Data, strategy::Strategy S, SupportedPrecision P = Float32>
Equivalence serial_equivalence(const TaskType& task, const Data& data, const S& strategy, int size, const EquivalenceOptions& options = {},
                               P precision = {}) {
  return serial_equivalence<C>(task, detail::batches_of(data, options.global_batch, options.seed), strategy, size, options, precision);
}

}  // namespace pdp::testing

#ifndef PDP_SEPARATE_CORE
#include <pdp/testing/source/equivalence.hpp>
#endif
