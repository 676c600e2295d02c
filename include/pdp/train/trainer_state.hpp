#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/converted.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/number_view.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/engine/check_device.hpp>
#include <pdp/engine/check_parameters.hpp>
#include <pdp/engine/engine.hpp>
#include <pdp/engine/world.hpp>
#include <pdp/loss/output_rows.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/metric/states.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/divides.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/checked_plan.hpp>
#include <pdp/train/counting_rows.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/dataset_checks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/evaluation.hpp>
#include <pdp/train/fit_loop.hpp>
#include <pdp/train/fit_run.hpp>
#include <pdp/train/loss_watch.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/saver.hpp>

namespace pdp::detail {

/// The parts of a Trainer and the loop of its steps. It does not move when the Trainer moves, since the parts refer to each other. Trainer
/// documents the members of the same names. Borrows the communicator.
template <class C, class S, class TaskType, SupportedPrecision P, Device D>
struct TrainerState {
  using Model =
      decltype(strategy::placed(std::declval<const S&>(), std::declval<const TaskType&>().model, {}, std::declval<const TaskType&>().loss));
  using World = engine::World<C, D>;
  using Engine = engine::Engine<typename World::Comm, nn::LeafTypes<Model>, decltype(TaskType::loss), decltype(TaskType::optimizer), P, D>;
  using Checkpoints = Saver<typename World::Comm, D, typename Engine::T>;
  using T = typename Engine::Output;
  using Sample = typename Engine::Sample;
  using Samples = typename Converted<Sample>::Given;
  using DataSample = nn::SampleOf<Model, float>;             // of datasets
  using Target = typename decltype(TaskType::loss)::Target;  // of datasets
  using Targets = typename Converted<typename Engine::Target>::Given;

  TrainerState(C& communicator, const S& of_strategy, TaskType of_task, const TrainerOptions& given, const D& device)
      : world{communicator},
        task{std::move(of_task)},
        options{with_loss_scaling<P>(given)},
        strategy{of_strategy},
        input{input_of(task.model, options)},
        model{strategy::placed(strategy, task.model, {world->rank(), world->size()}, task.loss)},
        plan{plan_on(device)},
        limit{share_of(options, plan.share)},
        engine{*world, plan, model, input, task.loss, task.optimizer, {limit, options.seed}, options.gradient_policy(), device} {}
  TrainerState(const TrainerState&) = delete;
  TrainerState& operator=(const TrainerState&) = delete;

  void start(Samples x, Targets targets, Index global_rows, std::span<const Index> share_rows) {
    if (!agreed) agree({.call = TrainerCall::step});
    const auto [batch, factor] = prepare_step([&] {
      return std::pair{
          typename Engine::StepBatch{rows_of(samples(x), input.elements()), own_targets(targets), global_rows, false, share_rows},
          task.schedule.factor(engine.steps()) * position.rate_factor()};
    });
    engine.start(batch, factor, {.stops = stops, .saves = saver.is_busy(), .ends = ends});
  }
  engine::Totals finish() {
    const engine::Totals totals = engine.finish();
    loss_watch.take(totals, engine.steps() - 1);
    return totals;
  }

  std::vector<Epoch> fit(const data::AnyDataset& of, const FitOptions& fit, const FitFunctions& functions) {
    const D& device = engine.stage().device();
    const data::DatasetView<Target, DataSample>& data = of.get<Target, DataSample>();
    agree(arguments_of(arguments_of(TrainerCall::fit, data, of.is_per_rank(), options.seed, world->size()), fit, position.get().epoch));
    const loss::OutputRows rows = check_shapes(task, input, data);
    if (fit.validation) check_shapes(task, input, fit.validation.template get<Target, DataSample>());
    const DataDivision division = division_of(*world, device, data, of.is_per_rank(), plan.share, options.seed);
    // The last batch of an epoch. Otherwise the error would come after a whole epoch.
    if (division.parts.empty()) engine::check_sums(engine.stage().outline(), division.samples % options.global_batch);
    const typename Checkpoints::Use saving{saver, fit.checkpoint, options.non_finite};
    const bool resumes = engine.steps() == 0 && saver.resume(saver.folder(), position.get());
    const std::int64_t end = position.begin_fit(fit, options, division, resumes);
    stops = ends = false;
    return FitRun{*this, fit, functions, of, division, rows, resumes}.run(end);
  }
  /// All datasets go through the same type, so that one evaluation is compiled, and one fit().
  [[nodiscard]] Evaluation evaluate(const data::AnyDataset& of, std::span<const metric::Any> metrics) {
    const D& device = engine.stage().device();
    const data::DatasetView<Target, DataSample>& data = of.get<Target, DataSample>();
    check_agreement(*world, device, arguments_of(TrainerCall::evaluate, data, of.is_per_rank(), options.seed, world->size()));
    const loss::OutputRows rows = check_shapes(task, input, data);
    const auto division = division_of(*world, device, data, of.is_per_rank(), plan.share, options.seed);
    const Index inputs = input.elements(), most = engine.evaluation_rows();
    Converted<Sample> converted{most * inputs};
    Converted<typename Engine::Target> converted_targets{most * rows.target_elements(task.loss)};
    Converted<float> as_floats{most * rows.count * rows.outputs};
    const EvaluatedModel<DataSample, Target> evaluated{
        .rows = most,
        .outputs = rows.outputs,
        .evaluate =
            [&](std::span<const DataSample> x, std::span<const Target> targets, std::span<const Index> numbers) {
              check_inputs(engine.stage(), rows_of(x, inputs), numbers, std::nullopt);
              check_targets(task.loss, targets, numbers, rows, std::nullopt);
              return engine.evaluate({rows_of(converted(x), inputs), converted_targets(targets)});
            },
        .add_outputs =
            [&](metric::States& states, std::span<const Target> targets) {
              const auto output = engine.evaluated_output();
              const Matrix<const float> floats{as_floats(output.values()).data(), output.rows, output.cols};
              const CountingRows counting{task.loss, rows.of(floats), targets};
              states.add(counting.outputs(), counting.targets());
            }};
    return detail::evaluate(*world, device, evaluated, data, division, plan, saver, position.get(), metrics, loss_watch, engine.steps());
  }
  [[nodiscard]] std::vector<T> predict(Samples x) { return detail::predict(*world, engine, plan, x, input.elements(), samples); }

  void set_learning_rate_factor(double factor) {
    check_agreement(*world, engine.stage().device(), {.call = TrainerCall::set_learning_rate_factor, .learning_rate_factor = factor});
    position.set_rate_factor(factor);
  }

  /// Compares the arguments of the ranks, and before the first step with new parameters also the parameters that several ranks hold.
  void agree(const CallArguments& given) {
    check_agreement(*world, engine.stage().device(), given);
    if (!agreed && world->size() > 1) engine::check_parameters(*world, engine.stage(), plan);
    agreed = true;
  }
  /// Calls `prepare`, which precedes the engine's part of a step. If it throws, counts the step as missed by this rank.
  template <class F>
  auto prepare_step(const F& prepare) {
    try {
      return prepare();
    } catch (...) {
      engine.miss_step();
      throw;
    }
  }

  World world;
  TaskType task;
  TrainerOptions options;
  S strategy;
  Shape input;
  Model model;  // this rank's part of the model, if the strategy divides layers
  plan::Plan plan;
  Index limit;  // rows of the largest share of a step
  Engine engine;
  Converted<Sample> samples{limit * input.elements()};
  Converted<typename Engine::Target> own_targets{
      limit * loss::output_rows<decltype(TaskType::loss)>(engine.stage().outline().output).target_elements(task.loss)};
  LossWatch loss_watch{world->rank()};
  bool agreed = false;  // whether the ranks have compared their parameters since the parameters were last initialised or set
  bool stops = false;   // this rank asks to stop after the next step
  bool ends = false;    // a callback of this rank, or the limit of steps, ends fit() after the next step
  TrainingPosition position{options};
  Checkpoints saver{*world, engine.state()};

 private:
  [[nodiscard]] plan::Plan plan_on(const D& device) {
    engine::check_device(*world, device);
    check_agreement<P>(*world, device, task, strategy, model, options);
    optim::check(task.schedule);
    return checked_plan(strategy, nn::outline(model, input), options.gradient_policy(), {world->rank(), world->size()});
  }
};

}  // namespace pdp::detail
