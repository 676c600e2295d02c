#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/data/loader.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/loss/output_rows.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/train/callback.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/dataset_checks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/epoch_run.hpp>
#include <pdp/train/kept_parameters.hpp>
#include <pdp/train/learning_rate.hpp>
#include <pdp/train/options.hpp>

namespace pdp::detail {

/// The functions that a program passes to fit(), besides the callbacks.
struct FitFunctions {
  std::function<Next(const Epoch& epoch)> epoch;
  std::function<Next(std::int64_t step, const engine::Totals& totals)> step{};  // may be empty
  bool epoch_may_stop = false;                                                  // whether `epoch` may return `stop`
};

/// Returns a program's functions, which it borrows.
template <class OnEpoch, class OnStep>
FitFunctions fit_functions(OnEpoch& on_epoch, OnStep& on_step) {
  FitFunctions all{.epoch = [&on_epoch](const Epoch& epoch) { return answer_of(on_epoch, epoch); },
                   .epoch_may_stop = !std::is_void_v<std::invoke_result_t<OnEpoch&, const Epoch&>>};
  if constexpr (!std::same_as<std::remove_const_t<OnStep>, Unwatched>)
    all.step = [&on_step](std::int64_t step, const engine::Totals& totals) { return answer_of(on_step, step, totals); };
  return all;
}

/// A fit() of a trainer, whose state it borrows: the loop over epochs and steps. Trainer::fit documents it. `Trainer`: a TrainerState.
template <class Trainer>
class FitRun final : private FitContext {
  using Target = typename Trainer::Target;
  using Engine = typename Trainer::Engine;
  using Loader = data::Loader<data::DatasetView<Target, typename Trainer::DataSample>>;

 public:
  /// `is_continued`: a checkpoint has been loaded for this fit().
  FitRun(Trainer& trainer, const FitOptions& options, const FitFunctions& functions, bool is_continued)
      : trainer_{trainer}, options_{options}, functions_{functions}, is_continued_{is_continued} {}

  /// Trains until the end of epoch `end` - 1. `division`: how the dataset lies on the ranks. `rows`: those of the loss in a sample's
  /// output. Returns the results of the epochs.
  std::vector<Epoch> run(const data::AnyDataset& data, const DataDivision& division, std::int64_t end, const loss::OutputRows& rows) {
    std::vector<Epoch> history;
    checkpoint::Position& at = trainer_.position.get();
    history.reserve(as_size(std::clamp<std::int64_t>(end - at.epoch, 0, 1000)));  // so that few epochs allocate
    Next next = agree(call([&](const Callback& callback) { return callback.begin(*this); }), false);
    Loader loader = training_loader(data.get<Target, typename Trainer::DataSample>(), division, trainer_.options, options_.shuffle,
                                    trainer_.plan.share);
    while (at.epoch < end && next == Next::proceed && !has_all_steps(0)) {
      EpochRun run{at, loader.steps(), options_.progress && rank() == 0};
      run_steps(loader, run, rows);
      if (at.batch < loader.steps()) {
        if (run.must_stop()) trainer_.saver.stop(at);
        break;  // a callback or the limit of steps has ended the training within the epoch
      }
      Epoch& epoch = history.emplace_back(run.end());
      epoch.learning_rate = learning_rate_of(trainer_.task, trainer_.engine.steps() - 1, at.rate_factor);
      if (!options_.training_metrics.empty()) epoch.training = trainer_.evaluate(data, options_.training_metrics);
      if (options_.validation) epoch.validation = trainer_.evaluate(options_.validation, options_.metrics);
      next = functions_.epoch(epoch);
      const Next others = call([&](const Callback& callback) { return callback(epoch, *this); });
      next = agree(std::max({next, others, run.ends() ? Next::stop : Next::proceed}), functions_.epoch_may_stop);
      trainer_.saver.after_epoch(at);
      if (run.must_stop()) trainer_.saver.stop(at);
    }
    if (at.epoch < end) trainer_.position.end_early();
    trainer_.saver.end(at);
    for (const Callback& each : options_.callbacks) each.end(*this);
    return history;
  }

 private:
  /// Runs the steps that the current epoch still has, or fewer if a rank asks to stop or a callback ends the training.
  void run_steps(Loader& loader, EpochRun& run, const loss::OutputRows& rows) {
    auto& saver = trainer_.saver;
    Engine& engine = trainer_.engine;
    const checkpoint::Position& at = trainer_.position.get();
    const bool runs_ahead = !saver.watches_steps() && !functions_.step &&
                            !std::remove_cvref_t<decltype(engine.stage().device())>::uses_host_memory &&
                            trainer_.options.non_finite != plan::NonFinite::stop;
    std::optional<typename Engine::Pending> before;
    loader.start(at.epoch, at.batch);
    for (const auto* batch = loader.next(); batch != nullptr;) {
      trainer_.prepare_step([&] {
        check_inputs(trainer_.engine.stage(), rows_of(batch->x, trainer_.input.elements()), batch->samples, engine.steps());
        check_targets(trainer_.task.loss, std::span<const Target>{batch->y}, std::span<const Index>{batch->samples}, rows, engine.steps());
      });
      trainer_.stops = trainer_.stops || saver.is_asked_to_stop();
      trainer_.ends = trainer_.ends || has_all_steps(1);
      trainer_.start(batch->x, batch->y, batch->global_rows, batch->share_rows);
      if (runs_ahead) {
        auto started = engine.pending();
        batch = has_all_steps(0) ? nullptr : loader.next();
        if (before && count(run, loader, *before, engine.steps() - 2)) batch = nullptr;
        before = std::move(started);
      } else {
        batch = loader.next();  // prefetches while a device computes
        const auto totals = trainer_.finish();
        if (run.count(totals)) batch = nullptr;
        if (functions_.step && functions_.step(engine.steps() - 1, totals) == Next::stop) trainer_.ends = true;
        saver.after_step(at, loader.steps(), totals);
      }
    }
    if (before) count(run, loader, *before, engine.steps() - 1);
  }
  /// Returns whether the trainer has made as many steps as fit() may make it, after `more` steps.
  [[nodiscard]] bool has_all_steps(std::int64_t more) const {
    return options_.steps > 0 && trainer_.engine.steps() + more >= options_.steps;
  }
  /// Counts a step that the engine has finished. Returns whether it is the last one.
  bool count(EpochRun& run, Loader& loader, const typename Engine::Pending& step, std::int64_t number) {
    const auto totals = trainer_.engine.finish(step, [&] { return next_counted(loader); });
    trainer_.loss_watch.take(totals, number);
    return run.count(totals);
  }

  /// Loads the batch of the step that is counted next, though the loader and the device have gone on.
  [[nodiscard]] auto next_counted(Loader& loader) {
    const checkpoint::Position& at = trainer_.position.get();
    loader.start(at.epoch, at.batch);
    const auto& batch = *loader.next();
    using Sample = typename decltype(batch.x)::value_type;
    return engine::Batch<Sample, Target>{{batch.x.data(), batch.rows, as_index(batch.x.size()) / std::max<Index>(batch.rows, 1)}, batch.y};
  }

  /// Calls all callbacks. Returns `stop` if one answers so.
  template <class F>
  Next call(const F& each) {
    Next answer = Next::proceed;
    for (const Callback& callback : options_.callbacks) answer = std::max(answer, each(callback));
    return answer;
  }
  /// Returns `stop` if a rank answers so. Sends a message only if there are callbacks, or if `answers`: fit()'s own on_epoch does.
  Next agree(Next own, bool answers) {
    if (options_.callbacks.empty() && !answers) return own;
    std::int64_t answer = own == Next::stop ? 1 : 0;
    engine::HostCalls{*trainer_.world, trainer_.engine.stage().device()}.all_reduce(std::span{&answer, 1}, comm::Max{});
    return answer > 0 ? Next::stop : Next::proceed;
  }

  [[nodiscard]] int rank() const override { return trainer_.world->rank(); }
  [[nodiscard]] bool is_continued() const override { return is_continued_; }
  [[nodiscard]] checkpoint::Values& values() override { return trainer_.saver.values(); }
  [[nodiscard]] std::vector<std::byte> own_parameters() override { return kept_parameters(trainer_.engine.stage()); }
  void set_own_parameters(std::span<const std::byte> bytes) override { set_kept_parameters(trainer_.engine.stage(), bytes); }
  [[nodiscard]] double learning_rate_factor() const override { return trainer_.position.get().rate_factor; }
  void set_learning_rate_factor(double factor) override { trainer_.set_learning_rate_factor(factor); }

  Trainer& trainer_;
  const FitOptions& options_;
  const FitFunctions& functions_;
  bool is_continued_;
};

}  // namespace pdp::detail
