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

/// When a rank that waits sends probes of its own, and which probes of others it has passed on.
class ProbeLog {
 public:
  /// `ranks`: of the world.
  explicit ProbeLog(int ranks) : passed_(as_size(ranks)) {}

  /// A wait begins, or something has moved in it: what was asked before is void.
  void begin(TimePoint now) {
    first_ = attempts_ + 1;
    pause_ = first_pause;
    next_ = now + pause_;
  }

  /// When the next attempt is due.
  [[nodiscard]] TimePoint next() const { return next_; }
  /// The number of a new attempt if it is time for one. Pauses double, as only the last rank of a circle to wait needs to ask soon.
  [[nodiscard]] std::optional<std::uint32_t> due(TimePoint now) {
    if (now < next_) return std::nullopt;
    pause_ *= 2;
    next_ = now + pause_;
    return ++attempts_;
  }
  /// Whether a probe of this rank is about the present wait.
  [[nodiscard]] bool is_valid(const Probe& own) const { return own.attempt >= first_ && own.attempt <= attempts_; }

  /// Whether a probe has not been passed on for this call before.
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
    const void* call = nullptr;       // for which the probe of that attempt has been passed on first
    std::vector<const void*> more{};  // and for which else
  };
  static constexpr std::chrono::milliseconds first_pause{200};

  std::uint32_t attempts_ = 0;
  std::uint32_t first_ = 1;  // attempt of the present wait
  Duration pause_ = first_pause;
  TimePoint next_{};
  std::vector<Passed> passed_;  // by initiator
};

}  // namespace pdp::comm
