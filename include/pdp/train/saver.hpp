#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
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
#include <pdp/engine/batch.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/loss_check.hpp>
#include <pdp/engine/training_state.hpp>
#include <pdp/launch/stop_requests.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/checkpoint_options.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/options.hpp>

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
  /// The factor of the learning rate, besides that of the schedule. Throws ConfigError if it is negative or not finite.
  [[nodiscard]] float rate_factor() const { return static_cast<float>(position_.rate_factor); }
  void set_rate_factor(double factor);

  /// Begins a fit() with a dataset. Returns the number of the epoch before which it ends. Throws ConfigError if the number of epochs is out
  /// of range, or if a checkpoint was loaded from the middle of an epoch that cannot be continued with these samples and options.
  /// `resumed`: this fit() has continued from a checkpoint, so epochs of earlier runs of the program count.
  [[nodiscard]] std::int64_t begin_fit(const FitOptions& fit, const TrainerOptions& options, const detail::DataDivision& data,
                                       bool resumed);
  /// Ends a fit() before its last epoch. The next one continues within the epoch, or begins the following one if it has other data.
  void end_early() {
    epochs_of_fits_ = position_.epoch;
    ended_at_ = {position_.epoch, position_.batch};
  }

 private:
  checkpoint::Position position_{};
  std::int64_t epochs_of_fits_ = 0;  // that all fit() so far were to make
  bool resumed_ = false;
  std::pair<std::int64_t, std::int64_t> ended_at_{};  // epoch and batch in which a fit() of this trainer ended early
};

namespace detail {

/// Returns the arguments of a fit() for the ranks to compare. `of_data`: those of its dataset. `before`: the epochs that the trainer has
/// completed.
[[nodiscard]] CallArguments arguments_of(CallArguments of_data, const FitOptions& fit, Index before);

}  // namespace detail

/// Throws ConfigError if an option is out of range.
void check(const CheckpointOptions& options);
/// Returns the options as numbers, which the ranks compare.
[[nodiscard]] std::vector<std::int64_t> numbers_of(const CheckpointOptions& options);

/// Saves and loads the checkpoints of a trainer. Borrows the world and the engine of the state. All members are for every rank.
template <comm::Communicator C, class D, class T>
class Saver {
  using Save = checkpoint::Save<C, D, T>;

 public:
  Saver(C& world, engine::TrainingState<C, D, T> state);
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  ~Saver();

  /// The use of a folder by a fit(). The constructor takes the folder for this job, and notices requests to stop from then on. Does nothing
  /// if the options name no folder. With NonFinite::stop_on_loss, no checkpoint with parameters that are not finite is saved:
  /// NonFiniteLoss is thrown instead.
  class [[nodiscard]] Use {
   public:
    Use(Saver& saver, const CheckpointOptions& options, plan::NonFinite non_finite);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    Saver& saver_;
    std::optional<StopRequests> stop_;
  };
  [[nodiscard]] bool is_on() const { return !options_.directory.empty(); }
  /// Whether after_step() needs the totals of each step before the next step starts.
  [[nodiscard]] bool watches_steps() const { return is_on() && (options_.every_steps > 0 || options_.asynchronous); }
  [[nodiscard]] const std::filesystem::path& folder() const { return options_.directory; }

  /// The numbers and texts of the program, which checkpoints keep.
  [[nodiscard]] checkpoint::Values& values() { return values_; }

  /// Loads a checkpoint, or the newest one in a folder, and sets `at` to its position, and values() to those that were saved with it.
  /// Returns values().
  const checkpoint::Values& load(const std::filesystem::path& path, checkpoint::Position& at);
  /// Does the same if there is a checkpoint. Returns whether there is one.
  [[nodiscard]] bool resume(const std::filesystem::path& path, checkpoint::Position& at);
  /// Saves the current state to a folder. `values`: are added to values(). Returns the path of the checkpoint. Throws ConfigError if the
  /// folder has no name.
  std::filesystem::path save(const std::filesystem::path& folder, const checkpoint::Position& at, const checkpoint::Values& values);

  /// Saves a checkpoint if one is due after this step. `of_epoch`: the steps of an epoch. After its last step, after_epoch() does that.
  /// `totals`: of the step.
  void after_step(const checkpoint::Position& at, Index of_epoch, const engine::Totals& totals);
  void after_epoch(const checkpoint::Position& at);
  /// Saves a checkpoint after the last step, unless there is one. Then throws Stopped on every rank if one has been asked to stop after the
  /// start of that step.
  void end(const checkpoint::Position& at);

  /// Whether this rank has been asked to stop. The ranks agree through the totals of their next step.
  [[nodiscard]] bool is_asked_to_stop() const { return stop_ != nullptr && stop_->requested(); }
  /// Whether this rank writes a checkpoint in the background. The ranks agree in the same way.
  [[nodiscard]] bool is_busy() const { return save_ && save_->is_busy(); }
  /// Saves a checkpoint if there is a folder, and throws Stopped. Every rank makes this call.
  [[noreturn]] void stop(const checkpoint::Position& at);

 private:
  [[nodiscard]] const auto& device() { return state_.device(); }

  /// Returns the right to write to a folder on rank 0, and null on the others.
  [[nodiscard]] std::unique_ptr<checkpoint::FolderLock> take(const std::filesystem::path& folder);
  void start_save(const checkpoint::Position& at, checkpoint::Writing writing);
  /// Completes the checkpoint that is being written, if there is one. Returns its path.
  std::filesystem::path finish_save();
  /// Saves a checkpoint. It is complete when this returns, unless the options say asynchronous.
  void save_here(const checkpoint::Position& at);
  /// Does the same, unless there is a checkpoint of this step, and waits until it is complete.
  void save_now(const checkpoint::Position& at);

  C& world_;
  engine::TrainingState<C, D, T> state_;
  CheckpointOptions options_{};
  std::unique_ptr<checkpoint::FolderLock> lock_;  // on rank 0, during a fit()
  const StopRequests* stop_ = nullptr;            // of that fit()
  std::int64_t saved_ = -1;                       // the step of the last checkpoint
  bool is_due_ = false;                           // a checkpoint, by the number of steps
  bool needs_finite_ = false;                     // parameters, in that fit()
  checkpoint::Values values_{};
  checkpoint::Copies copies_{};
  std::unique_ptr<Save> save_;  // that is not complete. The last member, since its thread uses the others
};

template <comm::Communicator C, class D, class T>
Saver<C, D, T>::Saver(C& world, engine::TrainingState<C, D, T> state) : world_{world}, state_{std::move(state)} {}

template <comm::Communicator C, class D, class T>
Saver<C, D, T>::~Saver() = default;

template <comm::Communicator C, class D, class T>
Saver<C, D, T>::Use::Use(Saver& saver, const CheckpointOptions& options, plan::NonFinite non_finite) : saver_{saver} {
  check(options);
  saver_.saved_ = -1;
  saver_.is_due_ = false;
  if (options.directory.empty()) return;
  stop_.emplace(options.stop_after);
  saver_.lock_ = saver_.take(options.directory);
  saver_.options_ = options;
  saver_.needs_finite_ = non_finite == plan::NonFinite::stop_on_loss;
  saver_.stop_ = &*stop_;
}

template <comm::Communicator C, class D, class T>
Saver<C, D, T>::Use::~Use() {
  saver_.save_.reset();  // if the fit() throws: waits for this rank's thread
  saver_.options_ = {};
  saver_.lock_.reset();
  saver_.stop_ = nullptr;
}

template <comm::Communicator C, class D, class T>
const checkpoint::Values& Saver<C, D, T>::load(const std::filesystem::path& path, checkpoint::Position& at) {
  checkpoint::Loaded loaded = checkpoint::load_state(world_, state_, path);
  at = loaded.position;
  values_ = std::move(loaded.values);
  saved_ = at.step;
  return values_;
}

template <comm::Communicator C, class D, class T>
bool Saver<C, D, T>::resume(const std::filesystem::path& path, checkpoint::Position& at) {
  std::int64_t found = 0;
  checkpoint::on_every_rank(world_, device(), [&] {
    if (!path.empty() && world_.rank() == 0) found = checkpoint::has_checkpoint(path) ? 1 : 0;
  });
  engine::HostCalls{world_, device()}.broadcast(std::span{&found, 1}, 0);
  if (found > 0) static_cast<void>(load(path, at));
  return found > 0;
}

template <comm::Communicator C, class D, class T>
std::filesystem::path Saver<C, D, T>::save(const std::filesystem::path& folder, const checkpoint::Position& at,
                                           const checkpoint::Values& values) {
  if (folder.empty()) throw ConfigError{"save() was given an empty path; give it the folder of this training's checkpoints"};
  for (const auto& [name, value] : values) values_.insert_or_assign(name, value);
  finish_save();
  if (is_on() && folder.lexically_normal() == options_.directory.lexically_normal()) {
    start_save(at, checkpoint::Writing::now);
    return finish_save();
  }
  const auto lock = take(folder);
  return Save{world_, state_, {.lock = lock.get(), .position = at, .values = values_}, copies_}.finish();
}

template <comm::Communicator C, class D, class T>
void Saver<C, D, T>::after_step(const checkpoint::Position& at, Index of_epoch, const engine::Totals& totals) {
  if (save_ && totals.saves == 0 && save_->advance()) save_.reset();
  is_due_ = is_due_ || (is_on() && options_.every_steps > 0 && state_.steps() % options_.every_steps == 0);
  if (is_due_ && at.batch < of_epoch) save_here(at);
}

template <comm::Communicator C, class D, class T>
void Saver<C, D, T>::after_epoch(const checkpoint::Position& at) {
  const bool by_epochs = options_.every_epochs > 0 || options_.every_steps == 0;
  if (is_due_ || (is_on() && by_epochs && at.epoch % std::max(options_.every_epochs, 1) == 0)) save_here(at);
}

template <comm::Communicator C, class D, class T>
void Saver<C, D, T>::end(const checkpoint::Position& at) {
  if (!is_on()) return;
  save_now(at);
  std::int64_t asked = is_asked_to_stop() ? 1 : 0;
  engine::HostCalls{world_, device()}.all_reduce(std::span{&asked, 1}, comm::Max{});
  if (asked > 0) stop(at);
}

template <comm::Communicator C, class D, class T>
void Saver<C, D, T>::stop(const checkpoint::Position& at) {
  if (is_on()) save_now(at);
  const std::string where =
      is_on() ? text(", with a checkpoint in ", options_.directory.string(), "; start the program again to continue") : "";
  if (stop_ != nullptr) stop_->agreed();
  engine::meet_before_throwing(world_);
  throw Stopped{text("stopped on request after step ", state_.steps(), where)};
}

template <comm::Communicator C, class D, class T>
std::unique_ptr<checkpoint::FolderLock> Saver<C, D, T>::take(const std::filesystem::path& folder) {
  std::unique_ptr<checkpoint::FolderLock> lock;
  checkpoint::on_every_rank(world_, device(), [&] {
    if (world_.rank() == 0) lock = std::make_unique<checkpoint::FolderLock>(folder);
  });
  return lock;
}

template <comm::Communicator C, class D, class T>
void Saver<C, D, T>::start_save(const checkpoint::Position& at, checkpoint::Writing writing) {
  using Options = checkpoint::SaveOptions;
  save_ = std::make_unique<Save>(
      world_, state_, Options{.lock = lock_.get(), .position = at, .values = values_, .keep = options_.keep, .writing = writing}, copies_);
  saved_ = state_.steps();
  is_due_ = false;
}

template <comm::Communicator C, class D, class T>
std::filesystem::path Saver<C, D, T>::finish_save() {
  const auto save = std::exchange(save_, nullptr);
  return save ? save->finish() : std::filesystem::path{};
}

template <comm::Communicator C, class D, class T>
void Saver<C, D, T>::save_here(const checkpoint::Position& at) {
  finish_save();
  if (needs_finite_) engine::check_finite_parameters(world_, state_.stage(), state_.steps());
  start_save(at, options_.asynchronous ? checkpoint::Writing::in_background : checkpoint::Writing::now);
  if (!options_.asynchronous) finish_save();
}

template <comm::Communicator C, class D, class T>
void Saver<C, D, T>::save_now(const checkpoint::Position& at) {
  if (saved_ != state_.steps()) save_here(at);
  finish_save();
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/saver.hpp>
#endif
