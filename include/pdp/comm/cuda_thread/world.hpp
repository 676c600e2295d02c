#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/backend/free_list.hpp>
#include <pdp/comm/os/doorbell.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/cuda/detail/library.hpp>

namespace pdp::comm::cuda_thread {

class Group;

/// A call of one rank. The others of its group look at it where it lies, so it does not move and lasts as long as the world. It is used
/// again with its events, so a call like an earlier one makes nothing new.
struct Call {
  enum class State : std::uint8_t {
    made,      // the others may see it
    given,     // this rank's part is on its stream, with `end` behind it
    closed,    // so are all parts, and this rank's stream waits for them, with `through` behind
    complete,  // and the device has come there
  };

  Group* group = nullptr;
  State state = State::complete;

  // What the others read: not written after the call was shown to them.
  Envelope envelope;  // with the channel of its group, and its number there
  ErasedSpan in, out;
  std::array<CallChecks::Begins, 2> begins;  // of shards, where the call was given counts; of all_to_all: sent, received
  Shards cut, received;
  int to = no_peer, from = no_peer;  // of a message, in the group
  bool on_host = false;              // records of the host, to be copied at once
  cudaEvent_t ready = nullptr;       // what the caller's stream held before the call
  cudaEvent_t end = nullptr;         // this rank's part

  cudaEvent_t through = nullptr;  // all parts

  std::vector<Call*> all;                   // those of the group's ranks that belong to this one, itself included
  Call* found = nullptr;                    // of a message that is expected: what was sent
  bool has_received = false, sent = false;  // halves of a message that are done
  std::atomic<bool> is_given{false};
  std::atomic<Call*> taken{nullptr};  // of a message that is sent: by whom
  std::atomic<int> users{0};          // other ranks that may still look at the call
};

/// What all ranks have in common.
class World {
 public:
  /// One rank's place, in the order of ranks.
  struct Seat {
    int device = 0;
    Doorbell bell;
    std::atomic<bool> is_gone{false};
    std::vector<Call*> shown;           // that not all of their group have seen yet, in their order; guarded by the world's mutex
    std::mutex giving;                  // held while the rank gives work to its streams
    std::vector<cudaStream_t> streams;  // of its groups, and of those that are gone and had something to do
    FreeList<Call> calls;               // that the rank has made
  };

  explicit World(const std::vector<int>& devices) : seats_(devices.size()) {
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      seats_[rank].device = devices[rank];
      seats_[rank].shown.reserve(in_flight);
    }
  }
  World(World&&) = delete;
  ~World() {
    for (const Seat& seat : seats_)
      for (cudaStream_t stream : seat.streams) cudaStreamDestroy(stream);
    for (const Seat& seat : seats_)
      for (const Call& call : seat.calls.all())
        for (cudaEvent_t event : {call.ready, call.end, call.through})
          if (event != nullptr) cudaEventDestroy(event);
  }

  [[nodiscard]] int size() const { return as_int(seats_.size()); }
  [[nodiscard]] Seat& seat(int rank) { return seats_[as_size(rank)]; }
  /// Guards what ranks show each other.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

  /// Ends the world for all ranks. The first failure stays.
  void fail(Failure failure) {
    {
      const std::lock_guard lock{mutex_};
      if (!has_failed_.load(std::memory_order_relaxed)) {
        failure_ = std::move(failure);
        has_failed_.store(true, std::memory_order_release);
      }
    }
    ring();
  }
  [[nodiscard]] const Failure* failure() const { return has_failed_.load(std::memory_order_acquire) ? &failure_ : nullptr; }

  void leave(int rank) {
    seat(rank).is_gone.store(true, std::memory_order_release);
    ring();
  }

  /// The number of the group that comes of a call of another one and a colour: the same on all of its ranks.
  [[nodiscard]] std::uint64_t channel(std::uint64_t parent, std::uint64_t call, int color) {
    const std::lock_guard lock{mutex_};
    const auto [found, is_new] = channels_.try_emplace({parent, call, color}, Envelope::world + 1 + channels_.size());
    return found->second;
  }

 private:
  static constexpr std::size_t in_flight = 64;

  void ring() {
    for (Seat& each : seats_) each.bell.ring();
  }

  std::vector<Seat> seats_;
  std::mutex mutex_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, int>, std::uint64_t> channels_;
  std::atomic<bool> has_failed_{false};
  Failure failure_;
};

}  // namespace pdp::comm::cuda_thread
