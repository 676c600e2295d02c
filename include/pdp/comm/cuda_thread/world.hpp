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

/// A call of one rank. The other ranks of its group read it in place, so it never moves and lasts as long as the world. It is reused with
/// its events, so repeating a call allocates nothing.
struct Call {
  enum class State : std::uint8_t {
    made,      // visible to the other ranks
    given,     // this rank's part is on its stream, followed by the event `end`
    closed,    // this rank's stream waits for the parts of all ranks, and then reaches the event `through`
    complete,  // the device has reached `through`
  };

  Group* group = nullptr;
  State state = State::complete;

  // Read by the other ranks, so not written after the call is published.
  Envelope envelope;  // contains the channel of its group, and its number there
  ErasedSpan in, out;
  std::array<CallChecks::Begins, 2> begins;  // offsets of the shards, if the call has counts; for all_to_all: sent, received
  Shards cut, received;
  int to = no_peer, from = no_peer;  // for a message: ranks of the group
  bool on_host = false;              // `in` and `out` are records in host memory, which the host copies itself
  cudaEvent_t ready = nullptr;       // marks the earlier work of the caller's stream
  cudaEvent_t end = nullptr;         // marks the end of this rank's part

  cudaEvent_t through = nullptr;  // marks the end of all parts

  std::vector<Call*> all;                   // the calls of all ranks of the group in this collective, this one included
  Call* found = nullptr;                    // for a receive: the sender's call
  bool has_received = false, sent = false;  // whether each half of a message is done
  std::atomic<bool> is_given{false};
  std::atomic<Call*> taken{nullptr};  // for a send: the receiver's call
  std::atomic<int> users{0};          // the number of other ranks that may still read the call
};

/// The state that all ranks share.
class World {
 public:
  /// The entry of one rank.
  struct Seat {
    int device = 0;
    Doorbell bell;
    std::atomic<bool> is_gone{false};
    std::vector<Call*> shown;           // calls that the rank's peers may still look for, in order; guarded by the world's mutex
    std::mutex giving;                  // held while the rank enqueues work on its streams
    std::vector<cudaStream_t> streams;  // the streams of its groups, and those of destroyed groups that were still busy
    FreeList<Call> calls;               // all Call objects of the rank, idle or in use
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
  /// Guards the published calls, the failure and the channels.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

  /// Ends the world for all ranks. Only the first failure is kept.
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

  /// Marks a rank as gone, and wakes all ranks.
  void leave(int rank) {
    seat(rank).is_gone.store(true, std::memory_order_release);
    ring();
  }

  /// Returns the channel of a new group. The group is identified by its parent's channel, the number of the split in the parent, and a
  /// colour, so all its ranks get the same channel.
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
