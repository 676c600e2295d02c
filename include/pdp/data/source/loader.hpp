#pragma once

/// Definitions for pdp/data/loader.hpp; see pdp/core/separate_compilation.hpp.

#include <array>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/loader.hpp>
#include <pdp/data/share_order.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data::detail {

template <TargetElement Target, SampleElement Sample>
class Prefetch<Target, Sample>::State {
 public:
  State(const Source& source, AnySampler sampler, Shard shard) : source_{source}, sampler_{std::move(sampler), shard} {
    if (sampler_.samples() != source_.samples)
      throw ConfigError{text("expected a sampler over the ", source_.samples, " samples of the dataset, found one over ",
                             sampler_.samples(), ". Make it with the dataset's size().")};
    const Index rows = sampler_.largest_share();
    for (Slot& slot : slots_) {
      slot.x.resize(as_size(rows * source_.x_of_sample));
      slot.y.resize(as_size(rows * source_.y_of_sample));
      slot.share_rows.resize(as_size(sampler_.counted_shares()));
    }
    worker_ = std::jthread{[this](std::stop_token stop) { work(stop); }};
  }

  [[nodiscard]] Index steps() const { return sampler_.steps(); }

  void start(Index epoch, Index first) {
    if (first < 0 || first > sampler_.steps())
      throw ConfigError{text("expected a first batch from 0 to ", sampler_.steps(), ", the batches of an epoch, found ", first, ".")};
    std::unique_lock lock{mutex_};
    steps_ = 0;  // prevents further gathers
    changed_.wait(lock, [this] { return !gathering_; });
    sampler_.start(epoch);
    epoch_ = sampler_.epoch();
    gathered_ = given_ = returned_ = first;
    error_ = nullptr;
    steps_ = sampler_.steps();
    started_ = true;
    changed_.notify_all();
  }

  const Batch<Target, Sample>* next() {
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
    std::vector<Sample> x;
    std::vector<Target> y;
    std::vector<Index> share_rows;
    Batch<Target, Sample> batch;
  };

  Slot& slot(Index step) { return slots_[as_size(step) % slots_.size()]; }

  void work(std::stop_token stop) {
    std::unique_lock lock{mutex_};
    const auto slot_is_free = [this] { return gathered_ < steps_ && gathered_ - returned_ < as_index(slots_.size()) && !error_; };
    while (changed_.wait(lock, stop, slot_is_free) && !stop.stop_requested()) {
      const Index step = gathered_;
      gathering_ = true;
      lock.unlock();  // while gathering_ is set, no other thread uses the sampler's order, the epoch or this slot
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
    const auto which = sampler_.share(step);
    const std::span x = std::span{to.x}.first(which.size() * as_size(source_.x_of_sample));
    const std::span y = std::span{to.y}.first(which.size() * as_size(source_.y_of_sample));
    source_.gather(source_.data, which, x, y, epoch_);
    to.batch = {x, y, step, as_index(which.size()), sampler_.global_rows(step, to.share_rows), which, to.share_rows};
  }

  Source source_;
  ShareOrder sampler_;
  TrainingEpoch epoch_;
  std::array<Slot, 2> slots_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable_any changed_;
  Index steps_ = 0;     // in the current epoch
  Index gathered_ = 0;  // shares gathered so far
  Index given_ = 0;     // shares returned by next() so far
  Index returned_ = 0;  // shares that the caller no longer uses
  bool gathering_ = false;
  bool started_ = false;
  std::exception_ptr error_;  // thrown while gathering share number gathered_

  std::jthread worker_;  // last member: the thread ends before the others are destroyed
};

template <TargetElement Target, SampleElement Sample>
Prefetch<Target, Sample>::Prefetch(const Source& source, AnySampler sampler, Shard shard)
    : state_{std::make_unique<State>(source, std::move(sampler), shard)} {}
template <TargetElement Target, SampleElement Sample>
Prefetch<Target, Sample>::~Prefetch() = default;

template <TargetElement Target, SampleElement Sample>
Index Prefetch<Target, Sample>::steps() const {
  return state_->steps();
}
template <TargetElement Target, SampleElement Sample>
void Prefetch<Target, Sample>::start(Index epoch, Index first) {
  state_->start(epoch, first);
}
template <TargetElement Target, SampleElement Sample>
const Batch<Target, Sample>* Prefetch<Target, Sample>::next() {
  return state_->next();
}

}  // namespace pdp::data::detail
