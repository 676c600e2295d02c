#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/message/stream/heartbeat.hpp>
#include <pdp/comm/shm/segment.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::shm {

/// A thread that sleeps nearly always. It increments a rank's heartbeat counter once per Heartbeat::interval while the process runs.
class Heart {
 public:
  /// `beats`: the counter; borrowed. Throws ConfigError if the system cannot start a thread.
  explicit Heart(std::atomic<std::uint32_t>& beats) {
    try {
      thread_ = std::jthread{[&beats](const std::stop_token& stop) { run(stop, beats); }};
    } catch (const std::system_error& error) {
      throw ConfigError{text("a rank cannot start its heartbeat thread: ", describe_system_error(error.code().value()))};
    }
  }

 private:
  static void run(const std::stop_token& stop, std::atomic<std::uint32_t>& beats) {
    stream::Heartbeat::hold_back_signals();
    std::mutex mutex;
    std::condition_variable_any never;
    for (std::unique_lock lock{mutex}; !stop.stop_requested();
         never.wait_for(lock, stop, stream::Heartbeat::interval, [] { return false; }))
      beats.fetch_add(1, std::memory_order_relaxed);
  }

  std::jthread thread_;
};

/// The time for which each rank of a world on one host has shown no heartbeat, as observed by a rank that waits. At most 200 ms are counted
/// between two looks: if more time has passed, the observer may have been stopped itself.
class Silence {
 public:
  explicit Silence(int size) : peers_(as_size(size)) {}

  /// Sets how long a rank may be silent; zero means for ever.
  void patience(Duration heartbeat) { patience_ = heartbeat; }
  [[nodiscard]] Duration patience() const { return patience_; }

  /// Returns the first rank that has been silent for too long, if any. Looks at most once per 100 ms. `excused(rank)`: whether the rank
  /// need not show heartbeats.
  template <class Excused>
  [[nodiscard]] std::optional<int> look(const Segment& segment, const Excused& excused) {
    const TimePoint now = Clock::now();
    if (now < next_look_ || patience_ == Duration::zero()) return std::nullopt;
    const Duration passed = std::min<Duration>(now - last_look_, 2 * every);
    last_look_ = now;
    next_look_ = now + every;
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      Peer& peer = peers_[rank];
      const std::uint32_t beats = segment.seat(as_int(rank)).beats.load(std::memory_order_relaxed);
      peer.silent = beats == std::exchange(peer.beats, beats) ? peer.silent + passed : Duration::zero();
      if (peer.silent > patience_ && !excused(as_int(rank))) return as_int(rank);
    }
    return std::nullopt;
  }

 private:
  static constexpr std::chrono::milliseconds every{100};

  struct Peer {
    std::uint32_t beats = 0;
    Duration silent{};
  };
  std::vector<Peer> peers_;
  Duration patience_ = stream::Heartbeat::patience;
  TimePoint last_look_{}, next_look_{};
};

}  // namespace pdp::comm::shm
