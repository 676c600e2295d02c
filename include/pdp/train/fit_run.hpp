#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/data/loader.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/loss/output_rows.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/dataset_checks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/epoch_run.hpp>
#include <pdp/train/fit_loop.hpp>
#include <pdp/train/kept_parameters.hpp>
#include <pdp/train/learning_rate.hpp>
#include <pdp/train/options.hpp>

namespace pdp::detail {

/// A fit() of a trainer, whose state it borrows: the loop over the steps of an epoch. `Trainer`: a TrainerState.
template <class Trainer>
class FitRun final : public FitLoop {
  using Target = typename Trainer::Target;
  using Engine = typename Trainer::Engine;
  using Loader = data::Loader<data::DatasetView<Target, typename Trainer::DataSample>>;

 public:
  /// `division`: how the dataset lies on the ranks. `rows`: those of the loss in a sample's output. The others are those of FitLoop.
  FitRun(Trainer& trainer, const FitOptions& options, const FitFunctions& functions, const data::AnyDataset& data,
         const DataDivision& division, const loss::OutputRows& rows, bool is_continued)
      : FitLoop{options, functions, data, trainer.position, is_continued},
        trainer_{trainer},
        rows_{rows},
        loader_(training_loader(data.get<Target, typename Trainer::DataSample>(), division, trainer.options, options.shuffle,
                                trainer.plan.share)) {}

 private:
  void run_steps(EpochRun& run) override {
    auto& saver = trainer_.saver;
    Engine& engine = trainer_.engine;
    const checkpoint::Position& at = trainer_.position.get();
    const bool runs_ahead = !saver.watches_steps() && !functions().step &&
                            !std::remove_cvref_t<decltype(engine.stage().device())>::uses_host_memory &&
                            trainer_.options.non_finite != plan::NonFinite::stop;
    std::optional<typename Engine::Pending> before;
    loader_.start(at.epoch, at.batch);
    for (const auto* batch = loader_.next(); batch != nullptr;) {
      trainer_.prepare_step([&] {
        check_inputs(trainer_.engine.stage(), rows_of(batch->x, trainer_.input.elements()), batch->samples, engine.steps());
        check_targets(trainer_.task.loss, std::span<const Target>{batch->y}, std::span<const Index>{batch->samples}, rows_, engine.steps());
      });
      trainer_.stops = trainer_.stops || saver.is_asked_to_stop();
      trainer_.ends = trainer_.ends || has_all_steps(1);
      trainer_.start(batch->x, batch->y, batch->global_rows, batch->share_rows);
      if (runs_ahead) {
        auto started = engine.pending();
        batch = has_all_steps(0) ? nullptr : loader_.next();
        if (before && count(run, *before, engine.steps() - 2)) batch = nullptr;
        before = std::move(started);
      } else {
        batch = loader_.next();  // prefetches while a device computes
        const auto totals = trainer_.finish();
        if (run.count(totals)) batch = nullptr;
        if (functions().step && functions().step(engine.steps() - 1, totals) == Next::stop) trainer_.ends = true;
        saver.after_step(at, loader_.steps(), totals);
      }
    }
    if (before) count(run, *before, engine.steps() - 1);
  }
  /// Counts a step that the engine has finished. Returns whether it is the last one.
  bool count(EpochRun& run, const typename Engine::Pending& step, std::int64_t number) {
    const auto totals = trainer_.engine.finish(step, [&] { return next_counted(); });
    trainer_.loss_watch.take(totals, number);
    return run.count(totals);
  }

  /// Loads the batch of the step that is counted next, though the loader and the device have gone on.
  [[nodiscard]] auto next_counted() {
    const checkpoint::Position& at = trainer_.position.get();
    loader_.start(at.epoch, at.batch);
    const auto& batch = *loader_.next();
    using Sample = typename decltype(batch.x)::value_type;
    return engine::Batch<Sample, Target>{{batch.x.data(), batch.rows, as_index(batch.x.size()) / std::max<Index>(batch.rows, 1)}, batch.y};
  }

  [[nodiscard]] int rank() const override { return trainer_.world->rank(); }
  [[nodiscard]] checkpoint::Values& values() override { return trainer_.saver.values(); }
  [[nodiscard]] std::vector<std::byte> own_parameters() override { return kept_parameters(trainer_.engine.stage()); }
  void set_own_parameters(std::span<const std::byte> bytes) override { set_kept_parameters(trainer_.engine.stage(), bytes); }
  void set_learning_rate_factor(double factor) override { trainer_.set_learning_rate_factor(factor); }

  [[nodiscard]] std::int64_t steps() const override { return trainer_.engine.steps(); }
  [[nodiscard]] Index steps_of_epoch() const override { return loader_.steps(); }
  [[nodiscard]] double learning_rate() const override {
    return learning_rate_of(trainer_.task, trainer_.engine.steps() - 1, trainer_.position.get().rate_factor);
  }
  Evaluation evaluate(const data::AnyDataset& of, std::span<const metric::Any> metrics) override { return trainer_.evaluate(of, metrics); }
  void save_after_epoch() override { trainer_.saver.after_epoch(trainer_.position.get()); }
  void save_at_end() override { trainer_.saver.end(trainer_.position.get()); }
  void save_and_stop() override { trainer_.saver.stop(trainer_.position.get()); }
  [[nodiscard]] std::int64_t largest(std::int64_t own) override {
    engine::HostCalls{*trainer_.world, trainer_.engine.stage().device()}.all_reduce(std::span{&own, 1}, comm::Max{});
    return own;
  }

  Trainer& trainer_;
  loss::OutputRows rows_;
  Loader loader_;
};

}  // namespace pdp::detail
