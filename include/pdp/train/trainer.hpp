#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/number_view.hpp>
#include <pdp/data/dataset_requirements.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/engine/check_parameters.hpp>
#include <pdp/engine/engine.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/dataset_checks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/fit_loop.hpp>
#include <pdp/train/instances.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/print_epoch.hpp>
#include <pdp/train/task.hpp>
#include <pdp/train/trainer_guides.hpp>
#include <pdp/train/trainer_parameters.hpp>
#include <pdp/train/trainer_requirements.hpp>
#include <pdp/train/trainer_state.hpp>

namespace pdp {

/// Trains a task on the ranks of a world, which it borrows. Every rank makes the same calls unless their comments say otherwise.
///
/// The constructor throws ConfigError, ShapeError or PlanError if the arguments do not fit together. Every rank throws if the ranks'
/// arguments differ (see check_agreement). Before the first step, and in fit(), evaluate() and set_parameters(), the ranks also compare the
/// call and its arguments, and before the first step with new parameters also these. Steps send no messages for that.
///
/// A Trainer may be moved between its calls. A moved-from one may only be destroyed or assigned to. TrainerFor names its type.
template <class C, class S, class TaskType, SupportedPrecision P, Device D>
class Trainer {
  static_assert(comm::Communicator<C>,
                "pdp: the first argument of Trainer must be a communicator, but it does not model the concept comm::Communicator");
  static_assert(strategy::Strategy<S>,
                "pdp: the second argument of Trainer must be a strategy, a type with plan(outline, place) as the concept "
                "strategy::Strategy requires");
  // A non-deduced context: the guides in trainer_guides.hpp, not the constructors, deduce the types and say which argument does not fit.
  using World = std::type_identity_t<C>;
  using State = detail::TrainerState<C, S, TaskType, P, D>;

 public:
  using T = typename State::T;              // element type of the model's outputs
  using Samples = typename State::Samples;  // of a step: a NumberView, or for a model of tokens a span of std::int32_t
  using Target = typename State::Target;    // of a dataset's targets
  using Targets = typename State::Targets;  // of a step: a span of classes, or for a loss of numbers a NumberView
  using Totals = engine::Totals;

  /// Trains on options.threads CPU cores for each rank. `precision`: element types, as in Trainer{..., options, Bfloat16Gradients{}}.
  Trainer(World& world, const S& strategy, const TaskType& task, const TrainerOptions& options,
          P precision = {}) requires std::same_as<D, cpu::Cpu> : Trainer{world, strategy, task, options, options.cpu(), precision} {
    if (world.rank() == 0) detail::warn_of_useless_threads(options);
  }
  /// Trains on `device`.
  Trainer(World& world, const S& strategy, const TaskType& task, const TrainerOptions& options, const D& device, P = {})
      : state_{std::make_unique<State>(world, strategy, task, options, device)} {}

  /// The arguments that the trainer was given. world() is its world as the engine calls it.
  [[nodiscard]] auto& world() { return *state_->world; }
  [[nodiscard]] const S& strategy() const { return state_->strategy; }
  [[nodiscard]] const TaskType& task() const { return state_->task; }
  [[nodiscard]] const TrainerOptions& options() const { return state_->options; }
  [[nodiscard]] const plan::Plan& plan() const { return state_->plan; }
  [[nodiscard]] auto& engine() { return state_->engine; }
  /// Returns the number of steps so far, those before a checkpoint was loaded included.
  [[nodiscard]] std::int64_t steps() const { return state_->engine.steps(); }
  /// Returns the share of each global batch that this rank takes.
  [[nodiscard]] data::Shard share() const { return state_->plan.share; }

  /// Runs one step on this rank's own rows, at most its share of the global batch. Returns the totals over all ranks, with the loss from
  /// before the update. `x`: [rows, shape of a sample]; `targets`: [rows, target elements]; both in host memory. Numbers may be floats or
  /// doubles; those of the other type than T are copied. Ranks may give different numbers of rows, or none. The ranks of a pipeline, or of
  /// a tensor-parallel group, have one share and give the same rows.
  ///
  /// `global_rows`: the rows on all ranks, from which each rank's share must follow, since GPUs replay the step that was recorded for this
  /// number; 0: unknown. `share_rows`: the rows of each share, the same on all ranks, if they do not follow from global_rows. Throws
  /// ConfigError, ShapeError, TokenError, LabelError, NonFiniteLoss and NonFiniteGradient.
  Totals step(Samples x, Targets targets, Index global_rows = 0, std::span<const Index> share_rows = {}) {
    start(x, targets, global_rows, share_rows);
    return finish();
  }
  /// The two halves of step(). After start() the rows and targets may change. finish() waits for the step and returns its totals. Throws
  /// NonFiniteLoss if their loss is NaN or infinity. With another NonFinite, rank 0 reports the first such loss on standard error.
  void start(Samples x, Targets targets, Index global_rows = 0, std::span<const Index> share_rows = {}) {
    state_->start(x, targets, global_rows, share_rows);
  }
  Totals finish() { return state_->finish(); }
  /// Asks to stop: Totals::stops of the next step is above 0 on every rank. fit() throws Stopped after that step.
  void request_stop() { state_->stops = true; }

  /// Trains on a dataset for some epochs. All ranks give the same dataset, or each gives a data::PerRank. The order of an epoch and its
  /// global batches depend on the seed, and with data::PerRank on the sizes of its parts. Called again, it continues with the next epoch.
  /// Saves checkpoints, and continues from the newest one, if the options name a folder. Throws ShapeError if the dataset does not fit, and
  /// LabelError or TokenError, with the numbers of the step and of the sample, if a class or a token is out of range.
  ///
  /// After each epoch, evaluates the validation set with the metrics, and calls the callbacks of the options. Returns the results of the
  /// epochs. Calls on_step(number of the step, its totals) after each step and on_epoch(Epoch) after each epoch, on every rank. They may
  /// return Next::stop on any rank. Then fit() ends on all ranks: after the next step, or after the epoch. FitOptions::steps ends it after
  /// a step. A GPU that replays steps as graphs gets the next step before the host knows the totals of the last one, except with on_step or
  /// NonFinite::stop.
  template <data::Dataset Data, class OnEpoch, class OnStep>
  std::vector<Epoch> fit(const Data& data, const FitOptions& fit, OnEpoch&& on_epoch, OnStep&& on_step) {
    static_assert(std::same_as<typename Data::Target, Target>,
                  "pdp: the targets of the dataset are of another type than those of the loss");
    detail::check_sample_type<Data, typename State::DataSample>();
    const Data own = data;  // ranks that are threads may share `data`
    return state_->fit(data::AnyDataset{&own}, fit, detail::fit_functions(on_epoch, on_step));
  }
  template <data::Dataset Data, class OnEpoch>
  std::vector<Epoch> fit(const Data& data, const FitOptions& options, OnEpoch&& on_epoch) {
    return fit(data, options, on_epoch, detail::Unwatched{});
  }
  /// Trains in the same way, and prints a line on standard output for each epoch.
  template <data::Dataset Data>
  std::vector<Epoch> fit(const Data& data, const FitOptions& options) {
    return fit(data, options, [this](const Epoch& epoch) { print_epoch(world(), epoch); });
  }

  /// Does not compile; the static_asserts say what the dataset lacks.
  template <class Data, class... Callbacks>
  requires(!data::Dataset<Data>) void fit(const Data&, const FitOptions&, Callbacks&&...) {
    static_cast<void>(data::detail::DatasetRequirements<Data>::hold);
  }

  /// Returns the totals over a dataset and the metrics, on every rank. Each rank evaluates its share. Throws ShapeError as fit() does.
  /// Called in a fit(), also throws Stopped.
  template <data::Dataset Data>
  [[nodiscard]] Evaluation evaluate(const Data& data, std::span<const metric::Any> metrics = {}) {
    static_assert(std::same_as<typename Data::Target, Target>,
                  "pdp: the targets of the dataset are of another type than those of the loss");
    detail::check_sample_type<Data, typename State::DataSample>();
    return state_->evaluate(data::AnyDataset{&data}, metrics);
  }
  template <class Data>
  requires(!data::Dataset<Data>) [[nodiscard]] Evaluation evaluate(const Data&, std::span<const metric::Any> = {}) {
    static_cast<void>(data::detail::DatasetRequirements<Data>::hold);
    return {};
  }
  /// Returns the fraction of a dataset's samples that have the largest output at their class.
  template <class Data>
  [[nodiscard]] double accuracy(const Data& data) {
    static_assert(decltype(TaskType::loss)::has_classes, "pdp: accuracy() needs a loss with classes, such as loss::CrossEntropy");
    return evaluate(data).accuracy();
  }

  /// Returns the model's outputs for any number of rows: [rows, in] -> [rows, out]. A rank that holds the whole model may make this call
  /// alone. In Zero's stage 3 ranks may give different rows; in a pipeline or a tensor-parallel group they give the same.
  [[nodiscard]] std::vector<T> predict(Samples x) { return state_->predict(x); }

  /// Returns all parameters of the model on rank 0, gathered from the ranks that hold them. Returns an empty vector on the other ranks.
  [[nodiscard]] std::vector<checkpoint::Tensor> parameters() {
    const detail::GatheredParameters<T> all{world(), *this};
    return world().rank() == 0 ? all.tensors() : std::vector<checkpoint::Tensor>{};
  }
  /// Sets the parameters: every rank gives all of them, and takes those that it holds. `source` names their origin in messages. Throws, and
  /// changes nothing: ConfigError on every rank if a rank was given others than rank 0, and FileError if they do not fit the model.
  void set_parameters(const std::vector<checkpoint::Tensor>& tensors, std::string_view source) {
    check_agreement(world(), state_->engine.stage().device(),
                    {.call = TrainerCall::set_parameters, .parameters = checkpoint::hash_of(tensors)});
    state_->agreed = false;
    checkpoint::import_parameters(state_->engine.stage(), tensors, source);
  }
  /// Sets the parameters to those of another trainer on the same world, with the same bits. It may have another strategy, and its model the
  /// same parameters. Every rank makes this call, and needs memory for all parameters. Throws ConfigError on every rank if it does not fit.
  template <class OtherC, class OtherS, class OtherTask, SupportedPrecision OtherP, Device OtherD>
  void copy_parameters(Trainer<OtherC, OtherS, OtherTask, OtherP, OtherD>& other) {
    detail::copy_parameters(*this, other);
    state_->agreed = false;
  }
  /// The factor of the learning rate, besides the schedule's; 1 at first. Checkpoints keep it. Setting it throws ConfigError on every rank
  /// if the ranks give different ones, or if it is negative or not finite.
  [[nodiscard]] double learning_rate_factor() const { return state_->position.get().rate_factor; }
  void set_learning_rate_factor(double factor) { state_->set_learning_rate_factor(factor); }
  /// The program's own numbers and texts, which checkpoints keep. load(), resume() and a fit() that resumes set them. All ranks set the
  /// same.
  [[nodiscard]] checkpoint::Values& values() { return state_->saver.values(); }
  /// Saves the whole state as a checkpoint in a folder: parameters, optimizer state, position in the data, and values() with `values`
  /// added. Returns its path. Each rank writes a file of its own. Throws FileError on every rank if one cannot write; earlier checkpoints
  /// remain.
  std::filesystem::path save(const std::filesystem::path& folder, const checkpoint::Values& values = {}) {
    return state_->saver.save(folder, state_->position.get(), values);
  }
  /// Continues from a checkpoint, or from the newest one in a folder, of any strategy and number of ranks. Returns values(). Throws
  /// FileError on every rank if there is none, or if it is damaged or does not fit; load another one then before the next step.
  checkpoint::Values load(const std::filesystem::path& folder) {
    state_->agreed = false;
    return state_->saver.load(folder, state_->position.get());
  }
  /// Does the same if there is a checkpoint. Returns whether there is one.
  bool resume(const std::filesystem::path& folder) {
    state_->agreed = false;
    return state_->saver.resume(folder, state_->position.get());
  }
  /// Turns the tracing of steps on or off. A traced step begins with a barrier. On a GPU it waits for each instruction, so it takes longer.
  void trace(bool on) { state_->engine.trace(on); }
  /// Returns the timeline of the last traced step on rank 0. Returns an empty one on the other ranks, and if no step was traced.
  [[nodiscard]] engine::Timeline timeline() {
    if (state_->engine.times().empty()) return {};
    return engine::collect_timeline(world(), state_->engine.stage().device(), detail::carried_out_plans(*this), state_->engine.times());
  }
  /// Throws ParametersDiffer on every rank unless ranks that hold the same parameters hold bitwise equal values.
  void check_parameters() { engine::check_parameters(world(), state_->engine.stage(), state_->plan); }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace pdp
