#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/train/callback.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/epoch_run.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/saver.hpp>

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

/// The loop of a fit() over its epochs, which depends on no type of the trainer. Trainer::fit documents it; FitRun runs the steps. Borrows
/// all arguments.
class FitLoop : public FitContext {
 public:
  /// `data`: the dataset. `position`: that of the trainer. `is_continued`: a checkpoint has been loaded for this fit().
  FitLoop(const FitOptions& options, const FitFunctions& functions, const data::AnyDataset& data, TrainingPosition& position,
          bool is_continued)
      : options_{options}, functions_{functions}, data_{data}, position_{position}, is_continued_{is_continued} {}

  /// Trains until the end of epoch `end` - 1. Returns the results of the epochs.
  std::vector<Epoch> run(std::int64_t end);

  [[nodiscard]] bool is_continued() const override { return is_continued_; }
  [[nodiscard]] double learning_rate_factor() const override { return position_.get().rate_factor; }

 protected:
  [[nodiscard]] const FitOptions& options() const { return options_; }
  [[nodiscard]] const FitFunctions& functions() const { return functions_; }
  /// Returns whether the trainer has made as many steps as fit() may make it, after `more` steps.
  [[nodiscard]] bool has_all_steps(std::int64_t more) const { return options_.steps > 0 && steps() + more >= options_.steps; }

 private:
  /// The number of steps of the trainer so far, and that of an epoch.
  [[nodiscard]] virtual std::int64_t steps() const = 0;
  [[nodiscard]] virtual Index steps_of_epoch() const = 0;
  /// Runs the steps that the current epoch still has, or fewer if a rank asks to stop or a callback ends the training.
  virtual void run_steps(EpochRun& run) = 0;
  /// Returns the learning rate of the last step.
  [[nodiscard]] virtual double learning_rate() const = 0;
  virtual Evaluation evaluate(const data::AnyDataset& of, std::span<const metric::Any> metrics) = 0;
  /// Saver::after_epoch(), end() and stop(), at the current position.
  virtual void save_after_epoch() = 0;
  virtual void save_at_end() = 0;
  virtual void save_and_stop() = 0;
  /// Returns the largest of the numbers of all ranks.
  [[nodiscard]] virtual std::int64_t largest(std::int64_t own) = 0;

  /// Calls all callbacks. Returns `stop` if one answers so.
  Next call(const std::function<Next(const Callback&)>& each) const;
  /// Returns `stop` if a rank answers so. Sends a message only if there are callbacks, or if `answers`: fit()'s own on_epoch does.
  Next agree(Next own, bool answers);

  const FitOptions& options_;
  const FitFunctions& functions_;
  const data::AnyDataset& data_;
  TrainingPosition& position_;
  bool is_continued_;
};

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/fit_loop.hpp>
#endif
