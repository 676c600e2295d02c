#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/engine/engine.hpp>
#include <pdp/strategy/divides.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/task.hpp>
#include <pdp/verify/verify.hpp>

namespace pdp::testing {

/// The samples of one global batch, row after row: inputs [rows, values of a sample] and targets [rows, values of a target].
template <class Target>
struct GlobalBatch {
  std::vector<float> x;
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
              const EquivalenceOptions& options)
      : single_{std::move(single)}, control_{std::move(control)}, strategy_{by_rank.front()} {
    double drift = 0;
    for (std::size_t step = 0; step < single_.size(); ++step) {
      drift = std::max(drift, difference(control_[step], single_[step]));
      const bool strict = as_int(step) < options.strict_steps;
      allowed_.push_back(strict ? options.tolerance : std::max(options.tolerance, options.drift_factor * drift));
    }
    judge(by_rank);
  }

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
  static double difference(double loss, double reference) {
    if (!is_finite(loss) || !is_finite(reference)) return std::numeric_limits<double>::max();
    if (loss == reference) return 0;
    return std::min(std::abs(loss - reference) / std::abs(reference), std::numeric_limits<double>::max());
  }
  static std::string number(double value) { return fmt::format("{:.9g}", value); }

  void judge(const std::vector<std::vector<double>>& by_rank) {
    double worst = 0;
    for (std::size_t step = 0; step < single_.size() && fault_.empty(); ++step) {
      const double found = difference(strategy_[step], single_[step]);
      worst = std::max(worst, found);
      if (!is_finite(single_[step]))
        fault_ = pdp::text("step ", step, ": the loss of Single is ", number(single_[step]), "; choose a task that can be trained");
      else if (found > allowed_[step])
        fault_ = pdp::text("step ", step, ": the loss is ", number(strategy_[step]), ", but that of Single is ", number(single_[step]),
                           "; relative difference ", number(found), ", allowed ", number(allowed_[step]), " (the control run differs by ",
                           number(difference(control_[step], single_[step])), ")");
      for (std::size_t rank = 1; rank < by_rank.size() && fault_.empty(); ++rank)
        if (bits_of(by_rank[rank][step]) != bits_of(strategy_[step]))
          fault_ = pdp::text("step ", step, ": rank ", rank, " reports a loss of ", number(by_rank[rank][step]), ", but rank 0 one of ",
                             number(strategy_[step]), "; the totals are of all ranks and must be the same everywhere");
    }
    praise_ = pdp::text("in ", single_.size(), " steps the losses differ by at most ", number(worst), " of those of Single");
  }

  std::vector<double> single_, control_, strategy_;
  std::vector<double> allowed_;
  std::string fault_, praise_;
};

/// A function that returns the global batch of a step. All ranks call it concurrently, and it must return the same batch to each.
template <class Target>
using Batches = std::function<GlobalBatch<Target>(int step)>;

namespace detail {

/// Returns the rows of a batch in a random order, which is the same on every rank.
template <class Target>
GlobalBatch<Target> permuted(const GlobalBatch<Target>& batch, Index rows, int step) {
  std::vector<std::size_t> order(as_size(rows));
  std::iota(order.begin(), order.end(), std::size_t{0});
  random::Stream stream{random::make_key(0, "order of rows", step)};
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[stream.below(left)]);
  GlobalBatch<Target> other;
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

/// Trains with a strategy. Returns, for each rank, the mean loss of each step before its update. `permute`: whether the rows of
/// each batch are permuted.
template <comm::Communicator C, class TaskType, strategy::Strategy S>
std::vector<std::vector<double>> losses(const TaskType& task, const Shape& input, const S& strategy,
                                        const Batches<typename decltype(task.loss)::Target>& batches, const std::vector<plan::Plan>& plans,
                                        const EquivalenceOptions& options, bool permute) {
  const auto model_on = [&](int rank) { return strategy::placed(strategy, task.model, {rank, as_int(plans.size())}, task.loss); };
  using Engine = engine::Engine<C, decltype(model_on(0)), decltype(TaskType::loss), decltype(TaskType::optimizer)>;
  using Target = typename Engine::Target;
  return ranks<C>(as_int(plans.size()), [&](C& world) {
    const plan::Plan& plan = plans[as_size(world.rank())];
    const engine::Limits limits{.rows = (options.global_batch + plan.share.count - 1) / plan.share.count, .seed = options.seed};
    Engine engine{world, plan, model_on(world.rank()), input, task.loss, task.optimizer, limits, options.gradient};
    std::vector<double> losses;
    for (int step = 0; step < options.steps; ++step) {
      GlobalBatch<Target> batch = batches(step);
      const Index width = input.elements(), rows = as_index(batch.x.size()) / width;
      if (permute) batch = permuted(batch, rows, step);
      const Index target_width = rows > 0 ? as_index(batch.targets.size()) / rows : 0;
      const data::Rows share = data::shard_rows(rows, plan.share);
      const auto targets =
          std::span<const Target>{batch.targets}.subspan(as_size(share.first * target_width), as_size(share.size() * target_width));
      const Matrix<const float> x{batch.x.data() + share.first * width, share.size(), width};
      losses.push_back(engine.step({x, targets, rows}, task.schedule.factor(step)).mean_loss());
    }
    return losses;
  });
}

}  // namespace detail

/// Trains a task on the same global batches three times: with Single, with Single and the rows of each batch permuted, and with a strategy
/// on `size` ranks that are connected by C. Throws ConfigError if options.input is needed and missing, and PlanError if the plans are not
/// sound. Rethrows the exception of a rank that fails.
///
///   const auto report = testing::serial_equivalence<comm::Tcp>(task, batches, strategy::DataParallel{}, 4);
///   if (!report) std::cerr << report.text();
template <comm::Communicator C, class TaskType, strategy::Strategy S>
Equivalence serial_equivalence(const TaskType& task, const Batches<typename decltype(TaskType::loss)::Target>& batches, const S& strategy,
                               int size, const EquivalenceOptions& options = {}) {
  const Shape input = options.input.known() ? options.input : Shape{nn::input_elements(task.model)};
  if (input.elements() == 0) throw ConfigError{"the model takes samples of any shape; set input to theirs, as in {.input = Shape{784}}"};
  const auto checked_plans = [&](const auto& spread, int ranks) {
    const nn::Outline outline = nn::outline(strategy::placed(spread, task.model, {0, ranks}, task.loss), input);
    std::vector<plan::Plan> plans = strategy::plans_for(options.gradient, spread, outline, ranks);
    if (const plan::Verdict verdict = plan::verify(outline, plans); !verdict) throw PlanError{plan::explain(verdict, plans)};
    return plans;
  };
  const strategy::Single alone;
  const auto single = checked_plans(alone, 1), spread = checked_plans(strategy, size);
  return {detail::losses<C>(task, input, alone, batches, single, options, false).front(),
          detail::losses<C>(task, input, alone, batches, single, options, true).front(),
          detail::losses<C>(task, input, strategy, batches, spread, options, false), options};
}

/// As above, with batches from a dataset, in the order in which a Trainer takes the samples.
template <comm::Communicator C, class TaskType, data::Dataset Data, strategy::Strategy S>
Equivalence serial_equivalence(const TaskType& task, const Data& data, const S& strategy, int size,
                               const EquivalenceOptions& options = {}) {
  const Batches<typename Data::Target> batches = [&data, &options](int step) {
    data::Sampler sampler{data.size(), options.global_batch, options.seed};
    sampler.start(step / sampler.steps());
    const auto which = sampler.batch(step % sampler.steps());
    GlobalBatch<typename Data::Target> batch{std::vector<float>(which.size() * as_size(data.sample_shape().elements())),
                                             std::vector<typename Data::Target>(which.size() * as_size(data.target_shape().elements()))};
    data.gather(which, batch.x, batch.targets);
    return batch;
  };
  return serial_equivalence<C>(task, batches, strategy, size, options);
}

}  // namespace pdp::testing
