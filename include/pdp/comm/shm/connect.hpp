#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/shm/rings.hpp>
#include <pdp/comm/shm/this_host.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::shm {

/// The address of a Segment, which other ranks open as a file of its creator's process. Its form in the store: "process file host", a
/// newline and the nonce.
struct Address {
  pid_t process = 0;
  int file = -1;
  std::string host;
  Nonce nonce{};

  [[nodiscard]] std::string to_string() const {
    return text(process, ' ', file, ' ', host, '\n') + std::string{reinterpret_cast<const char*>(nonce.data()), nonce.size()};
  }
  /// Reads an address from its form in the store. Throws ConfigError if it is malformed.
  static Address parse(std::string_view words) {
    const std::size_t line = words.find('\n');
    const char* const end = words.data() + std::min(line, words.size());
    Address address;
    const auto process = std::from_chars(words.data(), end, address.process);
    const auto file = process.ptr == end ? process : std::from_chars(process.ptr + 1, end, address.file);
    if (process.ec != std::errc{} || file.ec != std::errc{} || file.ptr == end || line == std::string_view::npos ||
        words.size() - line != 1 + sizeof(Nonce))
      throw ConfigError{"the job's store has a malformed address of the ranks' shared memory; do all ranks run the same build?"};
    address.host.assign(file.ptr + 1, end);
    std::memcpy(address.nonce.data(), words.data() + line + 1, sizeof(Nonce));
    return address;
  }
};

inline Nonce draw_nonce() {
  std::random_device device;
  Nonce nonce;
  for (unsigned char& each : nonce) each = static_cast<unsigned char>(device());
  return nonce;
}

/// Throws PeerLost for a world rank that has ended during the start.
[[noreturn]] inline void lost_at_start(int rank) {
  Failure{Failure::Kind::lost, rank,
          text("rank ", rank, " is gone: its process ended while the job was still starting; its own output says why")}
      .raise();
}

/// Opens the segment that the rank in the first seat has created. `first`, `rank`: the world ranks of that rank and of this one. `size`:
/// the number of seats. Throws ConfigError if this rank cannot open the segment, and PeerLost if the first rank is gone.
inline Segment open_segment(const Address& address, int rank, int size, int first = 0) {
  if (const std::string here = this_host(); address.host != here)
    throw ConfigError{text("rank ", rank, " is on another host than rank ", first, ", or in another container there (", here, ", rank ",
                           first, ": ", address.host,
                           "); shared memory needs one host and one container; use another communicator, such as tcp")};
  const std::string path = text("/proc/", address.process, "/fd/", address.file);
  Descriptor file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  if (!file && errno == ENOENT) lost_at_start(first);
  if (!file) {
    throw ConfigError{text("rank ", rank, " cannot open the memory that rank ", first, " shares (", path,
                           "): ", describe_system_error(errno),
                           "; ranks that share memory must be processes of one user, in one user namespace; or use another "
                           "communicator, such as tcp")};
  }
  return Segment::open(std::move(file), address.nonce, size);
}

/// The start of one rank in a segment: takes this rank's seat, and waits until all other ranks have taken theirs.
class Entrance {
 public:
  /// `rank`: its seat. `pipe`: the descriptor to which others may write to wake this rank, or 0. `world_ranks`: the world rank of each
  /// seat, in a world of several hosts; empty if seats are world ranks. Throws ConfigError if the seat is taken.
  Entrance(const Segment& segment, int rank, int pipe = 0, std::vector<int> world_ranks = {})
      : segment_{segment}, rank_{rank}, world_ranks_{std::move(world_ranks)}, processes_{segment.size()} {
    std::int32_t process = 0;
    if (!segment_.seat(rank_).process.compare_exchange_strong(process, ::getpid()))
      throw ConfigError{
          text("rank ", in_world(rank_), " of this job is process ", process, " already; two processes were started as the same rank")};
    segment_.seat(rank_).pipe.store(pipe, std::memory_order_relaxed);
    advance(Seat::joined);
  }
  Entrance(Entrance&&) = delete;
  ~Entrance() {
    if (!complete_) advance(Seat::failed);
  }

  /// Waits until all ranks are ready. Throws PeerLost, or Timeout, which names the missing ranks. `look_elsewhere`: called every 500 ms
  /// meanwhile; throws if a rank has failed before it took its seat.
  Processes wait(
      TimePoint deadline, const std::function<void()>& look_elsewhere = [] {}) {
    // A rank that is ready has seen all ranks join, and watches them. So all ranks watch each other after the second wait.
    wait_for(Seat::joined, deadline, look_elsewhere);
    advance(Seat::ready);
    wait_for(Seat::ready, deadline, look_elsewhere);
    complete_ = true;
    return std::move(processes_);
  }

 private:
  void advance(Seat::Stage stage) { segment_.seat(rank_).stage.store(stage, std::memory_order_seq_cst); }
  [[nodiscard]] std::uint32_t stage(int rank) const { return segment_.seat(rank).stage.load(std::memory_order_seq_cst); }

  [[nodiscard]] int in_world(int rank) const { return world_ranks_.empty() ? rank : world_ranks_[as_size(rank)]; }

  void wait_for(Seat::Stage wanted, TimePoint deadline, const std::function<void()>& look_elsewhere) {
    TimePoint next_look = Clock::now() + time_between_looks;
    Duration pause = first_pause;
    for (TimePoint given_up = TimePoint::max();;) {
      bool complete = true;
      int failed = -1;
      for (int rank = 0; rank < segment_.size(); ++rank) {
        const std::uint32_t stage_of_rank = stage(rank);
        if (stage_of_rank != Seat::absent && watched_ == rank) {
          processes_.watch(rank, segment_.seat(rank).process.load(std::memory_order_relaxed));
          ++watched_;
        }
        if (stage_of_rank == Seat::failed) failed = rank;
        if (stage_of_rank < Seat::ready && processes_.ended(rank)) lost_at_start(in_world(rank));
        // A rank leaves only after all ranks were ready, so `left` counts as complete.
        complete = complete && stage_of_rank >= wanted && stage_of_rank != Seat::failed;
      }
      if (complete && watched_ == segment_.size()) return;
      processes_.look();
      const TimePoint now = Clock::now();
      if (now >= deadline) missing(wanted);
      // A rank fails here because another rank is gone or missing. This rank gets some time to find that rank itself.
      if (failed >= 0) given_up = std::min(given_up, now + time_to_find);
      if (now >= given_up) somebody_is_absent() ? missing(Seat::joined) : lost_at_start(in_world(failed));
      if (now >= next_look) {
        look_elsewhere();
        next_look = now + time_between_looks;
      }
      // Many waiting ranks must not take the processors from ranks that are still starting.
      std::this_thread::sleep_for(pause);
      pause = std::min<Duration>(2 * pause, Processes::pulse);
    }
  }

  [[nodiscard]] bool somebody_is_absent() const {
    for (int rank = 0; rank < segment_.size(); ++rank)
      if (stage(rank) == Seat::absent) return true;
    return false;
  }
  [[noreturn]] void missing(Seat::Stage wanted) const {
    std::string names;
    for (int rank = 0; rank < segment_.size(); ++rank)
      if (stage(rank) < wanted) names += text(names.empty() ? "rank " : ", rank ", in_world(rank));
    throw Timeout{
        text("rank ", in_world(rank_), " has not heard from ", names, " (of ", segment_.size(),
             " ranks) before the deadline for the start (PDP_TIMEOUT); a missing rank was not started, has failed, or is on another host")};
  }

  static constexpr Duration time_to_find = 3 * Processes::pulse;
  static constexpr std::chrono::milliseconds time_between_looks{500};
  static constexpr std::chrono::microseconds first_pause{200};

  const Segment& segment_;
  int rank_;
  std::vector<int> world_ranks_;
  Processes processes_;
  int watched_ = 0;  // the number of watched ranks, from the first one on
  bool complete_ = false;
};

/// Connects the ranks of one host. `rank`, `size`: this rank's seat, and the number of seats. `key`: of the segment's address in the store.
/// `world_ranks`: the world rank of each seat, in a world of several hosts; empty if seats are world ranks. If it is not empty, this rank
/// gets a Pipe, because it must also wait for sockets. Throws ConfigError if the ranks cannot share memory, PeerLost if one of them is
/// gone, and Timeout, which names the missing ranks, at the deadline.
inline Rings connect(const StoreView& store, int rank, int size, TimePoint deadline, const std::string& key = "shm/segment",
                     std::vector<int> world_ranks = {}) {
  if (size < 1 || rank < 0 || rank >= size) throw ConfigError{text("there is no rank ", rank, " in a world of ", size, " ranks")};
  if (size > 1) check_proc();
  std::shared_ptr<Segment> segment;
  const int first = world_ranks.empty() ? 0 : world_ranks.front();
  const int own = world_ranks.empty() ? rank : world_ranks[as_size(rank)];
  if (rank == 0) {
    const Nonce nonce = draw_nonce();
    segment = std::make_shared<Segment>(Segment::create(size, nonce));
    if (size > 1) store.set(key, Address{::getpid(), segment->file(), this_host(), nonce}.to_string());
  } else {
    std::string words;
    try {
      words = store.wait(key, deadline);
    } catch (const Timeout&) {
      if (Clock::now() < deadline) throw;  // the Timeout of another rank, which has reported it to all ranks
      throw Timeout{
          text("rank ", own, " has not heard from rank ", first, " (of ", size,
               " ranks) before the deadline for the start (PDP_TIMEOUT); it was not started, has failed, or cannot reach the job's store")};
    }
    segment = std::make_shared<Segment>(open_segment(Address::parse(words), own, size, first));
  }
  segment->map_rings_of(rank);
  std::optional<Pipe> pipe;
  if (!world_ranks.empty()) pipe.emplace();
  Entrance entrance{*segment, rank, pipe ? pipe->file() : 0, world_ranks};
  // Throws the failure that a rank has reported to all, if any.
  const auto hear_failure = [&] { static_cast<void>(store.get(key)); };
  Processes processes = [&] {
    try {
      return entrance.wait(deadline, hear_failure);
    } catch (const CommunicationError&) {
      hear_failure();
      throw;
    }
  }();
  segment->close_file();
  return Rings{std::move(segment), rank, std::move(processes), std::move(world_ranks), std::move(pipe)};
}

}  // namespace pdp::comm::shm
