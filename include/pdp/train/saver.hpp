#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/save.hpp>
#include <pdp/checkpoint/together.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/checkpoint_options.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/stop_requests.hpp>

namespace pdp {

/// The position of a training in its data.
class TrainingPosition {
 public:
  explicit TrainingPosition(const TrainerOptions& options) {
    position_.seed = options.seed;
    position_.global_batch = options.global_batch;
  }

  [[nodiscard]] const checkpoint::Position& get() const { return position_; }
  [[nodiscard]] checkpoint::Position& get() { return position_; }

  /// Begins a fit() with a dataset. Returns the number of the epoch before which it ends. Throws ConfigError if the number of epochs is out
  /// of range, or if a checkpoint was loaded from the middle of an epoch that cannot be continued with these samples and options.
  /// `resumed`: this fit() has continued from a checkpoint, so epochs of earlier runs of the program count.
  [[nodiscard]] std::int64_t begin_fit(const FitOptions& fit, const TrainerOptions& options, Index samples, bool resumed);

 private:
  checkpoint::Position position_{};
  std::int64_t epochs_of_fits_ = 0;  // that all fit() so far were to make
  bool resumed_ = false;
};

namespace detail {

/// Returns the arguments of a fit() for the ranks to compare. `before`: the epochs that the trainer has completed.
template <class Data>
[[nodiscard]] CallArguments arguments_of(const Data& data, const FitOptions& fit, Index before);

}  // namespace detail

/// Throws ConfigError if an option is out of range.
void check(const CheckpointOptions& options);
/// Returns the options as numbers, which the ranks compare.
[[nodiscard]] std::vector<std::int64_t> numbers_of(const CheckpointOptions& options);

template <class Data>
CallArguments detail::arguments_of(const Data& data, const FitOptions& fit, Index before) {
  return {.call = TrainerCall::fit,
          .epochs = fit.epochs,
          .epochs_before = before,
          .shuffle = fit.shuffle,
          .samples = data.size(),
          .sample = data.sample_shape(),
          .target = data.target_shape(),
          .checkpoint = numbers_of(fit.checkpoint)};
}

/// Saves checkpoints during a fit(). Borrows everything. All members are for every rank.
template <comm::Communicator C, class Engine>
class Saver {
 public:
  /// Takes the folder for this job. Does nothing if the options name no folder.
  Saver(C& world, Engine& engine, const CheckpointOptions& options) : world_{world}, engine_{engine}, options_{options} {
    check(options);
    if (!is_on()) return;
    checkpoint::on_every_rank(world_, device(), [&] {
      if (world_.rank() == 0) lock_.emplace(options_.directory);
    });
  }
  /// From now on, notices requests to stop.
  void watch() {
    if (is_on()) stop_.emplace(options_.stop_after);
  }
  /// Whether this rank has been asked to stop. The ranks agree through the totals of their next step.
  [[nodiscard]] bool is_asked_to_stop() const { return stop_ && stop_->requested(); }
  /// Saves a checkpoint and throws Stopped. Every rank makes this call.
  [[noreturn]] void stop(const checkpoint::Position& at) {
    after_fit(at);
    checkpoint::meet_before_throwing(world_);
    throw Stopped{text("stopped on request after step ", engine_.steps(), ", with a checkpoint in ", options_.directory.string(),
                       "; start the program again to continue")};
  }

  [[nodiscard]] bool is_on() const { return !options_.directory.empty(); }
  /// Whether a checkpoint is due after some step in the middle of an epoch.
  [[nodiscard]] bool saves_steps() const { return is_on() && options_.every_steps > 0; }
  /// Loads the newest checkpoint, and sets `at` to its position. Returns false if there is none.
  [[nodiscard]] bool resume(checkpoint::Position& at) {
    std::int64_t found = 0;
    checkpoint::on_every_rank(world_, device(), [&] {
      if (is_on() && world_.rank() == 0) found = checkpoint::checkpoints_in(options_.directory).empty() ? 0 : 1;
    });
    engine::HostCalls{world_, device()}.broadcast(std::span{&found, 1}, 0);
    if (found == 0) return false;
    static_cast<void>(load(options_.directory, at));
    return true;
  }
  /// Loads a checkpoint, or the newest one in a folder, and sets `at` to its position. Returns the values that were saved with it.
  checkpoint::Values load(const std::filesystem::path& folder, checkpoint::Position& at) {
    checkpoint::Loaded loaded = checkpoint::load_state(world_, engine_, folder);
    at = loaded.position;
    saved_ = at.step;
    return std::move(loaded.values);
  }

  void after_step(const checkpoint::Position& at) {
    if (saves_steps() && engine_.steps() % options_.every_steps == 0) save(at);
  }
  void after_epoch(const checkpoint::Position& at) {
    const bool by_epochs = options_.every_epochs > 0 || options_.every_steps == 0;
    if (is_on() && by_epochs && saved_ != engine_.steps() && at.epoch % std::max(options_.every_epochs, 1) == 0) save(at);
  }
  /// Saves a checkpoint after the last step, unless there is one.
  void after_fit(const checkpoint::Position& at) {
    if (is_on() && saved_ != engine_.steps()) save(at);
  }
  /// Throws Stopped on every rank if one has been asked to stop after the start of the last step.
  void end(const checkpoint::Position& at) {
    after_fit(at);
    std::int64_t asked = is_asked_to_stop() ? 1 : 0;
    if (is_on()) engine::HostCalls{world_, device()}.all_reduce(std::span{&asked, 1}, comm::Max{});
    if (asked > 0) stop(at);
  }
  /// Saves the current state. Returns the path of the checkpoint.
  std::filesystem::path save(const checkpoint::Position& at, const checkpoint::Values& values = {}) {
    auto path = checkpoint::save_state(world_, engine_, lock_ ? &*lock_ : nullptr, at, values, options_.keep);
    saved_ = engine_.steps();
    return path;
  }

 private:
  [[nodiscard]] const auto& device() { return engine_.stage().device(); }

  C& world_;
  Engine& engine_;
  CheckpointOptions options_;
  std::optional<checkpoint::FolderLock> lock_;  // on rank 0
  std::optional<StopRequests> stop_;
  std::int64_t saved_ = -1;  // the step of the last checkpoint
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/saver.hpp>
#endif
