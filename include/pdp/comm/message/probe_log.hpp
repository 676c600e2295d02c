#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/message/probe.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// Schedules the probes that a waiting rank sends, and records which probes of other ranks it has forwarded.
class ProbeLog {
 public:
  /// `ranks`: the size of the world.
  explicit ProbeLog(int ranks) : passed_(as_size(ranks)) {}

  /// Starts a new wait. Call it when a wait begins, or when a call has advanced during the wait. Earlier probes of this rank then become
  /// invalid.
  void begin(TimePoint now) {
    first_ = attempts_ + 1;
    pause_ = first_pause;
    next_ = now + pause_;
  }

  /// Returns the time of the next attempt.
  [[nodiscard]] TimePoint next() const { return next_; }
  /// Returns the number of a new attempt if one is due. The pause doubles with each attempt, because only the last rank that joins a cycle
  /// needs to send a probe soon.
  [[nodiscard]] std::optional<std::uint32_t> due(TimePoint now) {
    if (now < next_) return std::nullopt;
    pause_ *= 2;
    next_ = now + pause_;
    return ++attempts_;
  }
  /// Returns whether a probe of this rank belongs to the current wait.
  [[nodiscard]] bool is_valid(const Probe& own) const { return own.attempt >= first_ && own.attempt <= attempts_; }

  /// Returns whether to forward a probe for this call, and records that it is forwarded. Returns false if it has been forwarded for this
  /// call before, or if it belongs to an attempt older than the last one of its initiator.
  [[nodiscard]] bool passes(const Probe& probe, const void* call) {
    Passed& last = passed_[as_size(probe.initiator)];
    if (probe.attempt < last.attempt) return false;
    if (probe.attempt > last.attempt) {
      last.attempt = probe.attempt;
      last.call = call;
      last.more.clear();
      return true;
    }
    if (last.call == call || std::ranges::find(last.more, call) != last.more.end()) return false;
    last.more.push_back(call);
    return true;
  }

 private:
  struct Passed {
    std::uint32_t attempt = 0;
    const void* call = nullptr;       // the first call for which the probe of that attempt was forwarded
    std::vector<const void*> more{};  // other calls for which it was forwarded
  };
  static constexpr std::chrono::milliseconds first_pause{200};

  std::uint32_t attempts_ = 0;
  std::uint32_t first_ = 1;  // first attempt of the current wait
  Duration pause_ = first_pause;
  TimePoint next_{};
  std::vector<Passed> passed_;  // by initiator
};

}  // namespace pdp::comm
