#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/gloo/links.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::gloo {

/// The waits of one rank, none of which may outlast the deadline. One thread checks all of them. It wakes by itself at least once per
/// Clock::slice. So a wait need not wake it, and costs no system call if it ends in time.
class Deadlines {
 public:
  /// `rank`: this rank in the world.
  Deadlines(int rank, Duration deadline) : rank_{rank}, deadline_{bounded(deadline)} {}

  [[nodiscard]] Duration deadline() const { return deadline_.load(std::memory_order_relaxed); }
  void deadline(Duration duration) {
    const std::lock_guard lock{mutex_};
    deadline_ = bounded(duration);
    changed_.notify_all();
  }

  /// A wait that lasts as long as this object. `call`: borrowed. `awaited`: the world rank that is waited for, or -1 if several are
  /// possible.
  class Wait {
   public:
    Wait(Deadlines& all, const Envelope& call, int awaited) : all_{all}, call_{call}, awaited_{awaited}, since_{Clock::now()} {
      const std::lock_guard lock{all_.mutex_};
      next_ = all_.first_;
      if (next_ != nullptr) next_->previous_ = this;
      all_.first_ = this;
    }
    Wait(Wait&&) = delete;
    ~Wait() {
      const std::lock_guard lock{all_.mutex_};
      (previous_ == nullptr ? all_.first_ : previous_->next_) = next_;
      if (next_ != nullptr) next_->previous_ = previous_;
    }

   private:
    friend class Deadlines;
    Deadlines& all_;
    const Envelope& call_;
    int awaited_;
    TimePoint since_;
    Wait* previous_ = nullptr;
    Wait* next_ = nullptr;
  };

  /// Blocks until a wait outlasts the deadline, and returns its timeout. Returns nothing after a stop request.
  [[nodiscard]] std::optional<Failure> watch(const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    while (!stop.stop_requested()) {
      const Duration deadline = deadline_;
      const TimePoint now = Clock::now();
      Duration next = std::min<Duration>(deadline, Clock::slice);  // a wait that begins in this time cannot time out in it
      for (const Wait* wait = first_; wait != nullptr; wait = wait->next_) {
        if (wait->since_ + deadline <= now) return timeout_of(*wait);
        next = std::min(next, wait->since_ + deadline - now);
      }
      changed_.wait_for(lock, stop, next, [&] { return deadline_.load() != deadline; });
    }
    return std::nullopt;
  }

 private:
  static Duration bounded(Duration deadline) { return std::min<Duration>(deadline, no_timeout); }

  [[nodiscard]] Failure timeout_of(const Wait& wait) const {
    const double seconds = std::chrono::duration<double>(deadline()).count();
    const std::string waited = text("rank ", rank_, " waited ", std::lround(seconds * 1000), " ms for ", describe(wait.call_));
    constexpr const char* advice = " makes other calls or none, or the call needs a longer deadline (PDP_DEADLINE=SECONDS)";
    if (wait.awaited_ >= 0)
      return {Failure::Kind::timeout, rank_, text(waited, " and heard nothing from rank ", wait.awaited_, "; either that rank", advice)};
    return {Failure::Kind::timeout, rank_, text(waited, "; Gloo does not say for which rank. Either a rank", advice)};
  }

  int rank_;
  std::atomic<Duration> deadline_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Wait* first_ = nullptr;
};

}  // namespace pdp::comm::gloo
