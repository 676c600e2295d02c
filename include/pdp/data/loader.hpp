#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/sampler.hpp>

namespace pdp::data {

/// One shard's share of a global batch. The spans belong to the loader, and hold until its next call of next() or start().
template <TargetElement Target>
struct Batch {
  std::span<const float> x;          // [rows, sample_shape]
  std::span<const Target> y;         // [rows, target_shape]
  Index step = 0;                    // of the epoch
  Index rows = 0;                    // of this share; may be 0
  Index global_rows = 0;             // of all shares together
  std::span<const Index> samples{};  // the numbers of the rows in the dataset
};

/// Gathers a shard's next share on a thread of its own while the current one is used: two buffers, made once for the largest share.
/// Nothing is allocated after construction. One thread at a time may call it. The destructor waits for a gather in progress, no more.
template <Dataset D>
class Loader {
 public:
  using Target = typename D::Target;

  /// Throws ConfigError where the sampler is not one for this dataset, or the shard is none.
  Loader(D data, Sampler sampler, Shard shard = {}) : data_{std::move(data)}, sampler_{std::move(sampler)}, shard_{shard} {
    check_shard(shard_);
    if (sampler_.samples() != data_.size())
      throw ConfigError{text("expected a sampler over the ", data_.size(), " samples of the dataset, found one over ", sampler_.samples(),
                             ". Make it with the dataset's size().")};
    const Index rows = sampler_.largest_share(shard_);
    for (Slot& slot : slots_) {
      slot.x.resize(as_size(rows * data_.sample_shape().elements()));
      slot.y.resize(as_size(rows * data_.target_shape().elements()));
    }
    worker_ = std::jthread{[this](std::stop_token stop) { work(stop); }};
  }

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  [[nodiscard]] const D& data() const { return data_; }

  /// Global batches of an epoch.
  [[nodiscard]] Index steps() const { return sampler_.steps(); }

  /// Begins an epoch, also in the middle of another one or after an error.
  void start(Index epoch) {
    std::unique_lock lock{mutex_};
    steps_ = 0;  // no further gather begins
    changed_.wait(lock, [this] { return !gathering_; });
    sampler_.start(epoch);
    gathered_ = given_ = returned_ = 0;
    error_ = nullptr;
    steps_ = sampler_.steps();
    started_ = true;
    changed_.notify_all();
  }

  /// The epoch's next share, or nullptr after the last one. Gives the share before it back to the loader. Waits for the gather;
  /// what that has thrown is thrown here, again on every call until start().
  const Batch<Target>* next() {
    std::unique_lock lock{mutex_};
    if (!started_) throw ConfigError{"the loader has no epoch to read. Call start(epoch) before next()."};
    returned_ = given_;
    changed_.notify_all();
    if (given_ == steps_) return nullptr;
    changed_.wait(lock, [this] { return gathered_ > given_ || error_; });
    if (gathered_ == given_) std::rethrow_exception(error_);
    return &slot(given_++).batch;
  }

 private:
  struct Slot {
    std::vector<float> x;
    std::vector<Target> y;
    Batch<Target> batch;
  };

  Slot& slot(Index step) { return slots_[as_size(step) % slots_.size()]; }

  void work(std::stop_token stop) {
    std::unique_lock lock{mutex_};
    const auto slot_is_free = [this] { return gathered_ < steps_ && gathered_ - returned_ < as_index(slots_.size()) && !error_; };
    while (changed_.wait(lock, stop, slot_is_free) && !stop.stop_requested()) {
      const Index step = gathered_;
      gathering_ = true;
      lock.unlock();  // while gathering_, nobody else touches the sampler's order or this slot
      std::exception_ptr thrown;
      try {
        gather(step);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      gathering_ = false;
      if (thrown)
        error_ = std::move(thrown);
      else
        ++gathered_;
      changed_.notify_all();
    }
  }

  void gather(Index step) {
    Slot& to = slot(step);
    const auto which = sampler_.share(step, shard_);
    const std::span x = std::span{to.x}.first(which.size() * as_size(data_.sample_shape().elements()));
    const std::span y = std::span{to.y}.first(which.size() * as_size(data_.target_shape().elements()));
    data_.gather(which, x, y);
    to.batch = {x, y, step, as_index(which.size()), as_index(sampler_.batch(step).size()), which};
  }

  D data_;
  Sampler sampler_;
  Shard shard_;
  std::array<Slot, 2> slots_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  Index steps_ = 0;     // of the epoch that was started
  Index gathered_ = 0;  // shares of it that were made
  Index given_ = 0;     // that next() has handed out
  Index returned_ = 0;  // that the caller is done with
  bool gathering_ = false;
  bool started_ = false;
  std::exception_ptr error_;  // of share number gathered_

  std::jthread worker_;  // last, so that it has ended before the rest goes
};

}  // namespace pdp::data
