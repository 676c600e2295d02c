#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/message/stream/links.hpp>
#include <pdp/comm/message/stream/outbox.hpp>
#include <pdp/comm/message/together/meetings.hpp>
#include <pdp/comm/shm/arena.hpp>
#include <pdp/comm/shm/bell.hpp>
#include <pdp/comm/shm/heart.hpp>
#include <pdp/comm/shm/processes.hpp>
#include <pdp/comm/shm/segment.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::shm {

/// The streams of messages between one rank and the others of its host: a ring in shared memory to each of them, and one from each. A
/// sender copies into the ring. The receiver reads values in place.
class Rings {
 public:
  using Meetings = together::Meetings<Arenas, Bell, Memory>;

  /// `segment`: this rank's rings are mapped, and all ranks have taken their seats. `rank` and all peers are seat numbers. `world_ranks`:
  /// the world rank of each seat, in a world of several hosts; empty if seats are world ranks. `pipe`: wakes this rank when it also waits
  /// for other descriptors.
  Rings(std::shared_ptr<const Segment> segment, int rank, Processes processes, std::vector<int> world_ranks = {},
        std::optional<Pipe> pipe = std::nullopt)
      : segment_{std::move(segment)},
        rank_{rank},
        processes_{std::move(processes)},
        ring_bytes_{segment_->ring_bytes()},
        world_ranks_{std::move(world_ranks)},
        pipe_{std::move(pipe)},
        silence_{size()} {
    bells_.reserve(as_size(size()));  // must not reallocate: partners point to the elements
    std::vector<together::Partner<Bell>> all;
    for (int peer = 0; peer < size(); ++peer) {
      Seat& seat = segment_->seat(peer);
      const int process = seat.process.load(std::memory_order_relaxed), file = seat.pipe.load(std::memory_order_relaxed);
      bells_.emplace_back(seat.parking, file > 0 && peer != rank
                                            ? Pipe::open({static_cast<std::uint64_t>(process), static_cast<std::uint64_t>(file)})
                                            : Descriptor{});
      all.push_back(partner(peer, segment_->board(peer)));
      in_.push_back({&segment_->counters(peer, rank), segment_->ring(peer, rank)});
      out_.push_back({&segment_->counters(rank, peer), segment_->ring(rank, peer)});
    }
    if (!world_ranks_.empty()) return;
    meetings_.add(Envelope::world, std::move(all), rank);
    if (size() > 1) heart_.emplace(segment_->seat(rank_).beats);
  }

  [[nodiscard]] int size() const { return segment_->size(); }
  [[nodiscard]] bool open(int peer) const { return peer != rank_; }
  void want(int) {}
  [[nodiscard]] bool news() const { return silent_.has_value(); }
  stream::News take_news() {
    const int rank = *std::exchange(silent_, std::nullopt);
    return {.failure = stream::Heartbeat::lost(rank, rank_, silence_.patience(), "its process is stopped")};
  }
  void tell(const Failure&) {}  // nothing to do: every rank has a stream from this one
  void heartbeat(Duration duration) { silence_.patience(duration); }

  [[nodiscard]] Meetings& meetings() { return meetings_; }
  [[nodiscard]] const Meetings& meetings() const { return meetings_; }
  /// Adds a group of world ranks that all have seats here. `boards`: memory of a Board for each of them.
  void add_group(const GroupPlace& place, std::vector<Memory> boards) {
    std::vector<together::Partner<Bell>> members;
    for (std::size_t member = 0; member < place.ranks.size(); ++member)
      members.push_back(partner(seat_of(place.ranks[member]), *reinterpret_cast<together::Board*>(boards[member].data())));
    meetings_.add(place.channel, std::move(members), place.rank, std::move(boards));
  }
  /// Returns the seat of a world rank, or -1 if it has none here.
  [[nodiscard]] int seat_of(int world_rank) const {
    if (world_ranks_.empty()) return world_rank;
    const auto found = std::ranges::find(world_ranks_, world_rank);
    return found == world_ranks_.end() ? -1 : as_int(found - world_ranks_.begin());
  }

  [[nodiscard]] bool unread(int peer) const {
    const In& in = in_[as_size(peer)];
    return in.counters->written.load(std::memory_order_acquire) != in.seen;
  }
  bool read(int peer, stream::Inbox& inbox, stream::Strays& strays) {
    In& in = in_[as_size(peer)];
    bool moved = false;
    for (int pieces = 0; pieces < pieces_at_once && !inbox.fault() && !inbox.ended(); ++pieces) {
      const bool ended = gone(peer);  // checked first, so that all bytes that the peer wrote before its end are seen
      in.seen = in.counters->written.load(std::memory_order_acquire);
      if (in.seen - in.taken > ring_bytes_) {
        inbox.garbled();
        return true;
      }
      const std::uint64_t there = std::min<std::uint64_t>(in.seen - in.taken, piece());
      const std::size_t taken = there > 0 ? inbox.take(in.bytes + in.taken % ring_bytes_, there, strays) : 0;
      if (taken == 0) {
        if (ended) inbox.closed();
        return moved || ended;
      }
      moved = true;
      in.taken += taken;
      // The inbox moves a misaligned value down by a few bytes before it uses it. So the sender must not overwrite these bytes yet.
      in.counters->read.store(in.taken / alignment * alignment, std::memory_order_seq_cst);
      bells_[as_size(peer)].ring();
    }
    return moved;
  }

  std::size_t write(int peer, std::span<iovec, 2> parts) {
    if (gone(peer)) return stream::gone;
    Out& out = out_[as_size(peer)];
    const std::size_t wanted = parts[0].iov_len + parts[1].iov_len;
    if (room(out) < wanted) out.read = out.counters->read.load(std::memory_order_acquire);
    const std::size_t taken = std::min(wanted, room(out));
    for (std::size_t done = 0; done < taken;) {  // in pieces, so that the receiver can start before the last one
      const std::size_t end = std::min(taken, done + piece());
      while (done < end) {
        const bool first = done < parts[0].iov_len;
        const std::size_t offset = first ? done : done - parts[0].iov_len;
        const std::size_t bytes = std::min(end - done, parts[first ? 0 : 1].iov_len - offset);
        std::memcpy(out.bytes + out.written % ring_bytes_, static_cast<const std::byte*>(parts[first ? 0 : 1].iov_base) + offset, bytes);
        out.written += bytes;
        done += bytes;
      }
      out.counters->written.store(out.written, std::memory_order_seq_cst);
      bells_[as_size(peer)].ring();
    }
    return taken;
  }

  bool wait(std::span<stream::Interest> interests, TimePoint until) {
    const auto is_ready = [&] { return ready(interests); };
    while (!is_ready()) {
      const TimePoint now = Clock::now();
      if (now < until) segment_->seat(rank_).parking.sleep(std::min(until, now + Processes::pulse), is_ready);
      look_for_lives();
      if (Clock::now() >= until || news()) return is_ready() || news();
    }
    return true;
  }

  bool ready(std::span<stream::Interest> interests) {
    bool any = meetings_.ready();
    for (int peer = 0; peer < size(); ++peer) {
      stream::Interest& interest = interests[as_size(peer)];
      const In& in = in_[as_size(peer)];
      const Out& out = out_[as_size(peer)];
      interest.ready = (interest.read && in.counters->written.load(std::memory_order_seq_cst) != in.seen) ||
                       (interest.write && (room(out) > 0 || out.counters->read.load(std::memory_order_seq_cst) != out.read)) ||
                       ((interest.read || interest.write) && gone(peer));
      any = any || interest.ready;
    }
    return any;
  }
  /// Begin and end a sleep in a poll. The poll must include descriptor(), by which other ranks wake this one. After lie_down(), check once
  /// more for events before polling. A sleep must not last longer than Processes::pulse.
  void lie_down() { segment_->seat(rank_).parking.lie_down(Parking::on_pipe); }
  void get_up() {
    segment_->seat(rank_).parking.get_up();
    pipe_->drain();
    look_for_lives();
  }
  [[nodiscard]] int descriptor() const { return pipe_->descriptor(); }

  void leave(TimePoint) noexcept {
    segment_->seat(rank_).stage.store(Seat::left, std::memory_order_seq_cst);
    for (int peer = 0; peer < size(); ++peer) bells_[as_size(peer)].ring();
  }

 private:
  void look_for_lives() {
    processes_.look();
    if (heart_ && !silent_) silent_ = silence_.look(*segment_, [this](int rank) { return rank == rank_ || gone(rank); });
  }

  struct In {
    RingCounters* counters;
    std::byte* bytes;
    std::uint64_t taken = 0;
    std::uint64_t seen = 0;  // the value of `written` at the last look
  };
  struct Out {
    RingCounters* counters;
    std::byte* bytes;
    std::uint64_t written = 0;
    std::uint64_t read = 0;  // the value of `read` at the last look
  };
  static constexpr int pieces_at_once = 8;
  static constexpr std::uint64_t alignment = 8;  // of the largest DType

  [[nodiscard]] together::Partner<Bell> partner(int seat, together::Board& board) {
    const auto s = as_size(seat);
    return {world_ranks_.empty() ? seat : world_ranks_[s], &board, &bells_[s]};
  }
  /// Returns after how many bytes the other side is notified: few, so that both sides copy at the same time.
  [[nodiscard]] std::size_t piece() const { return std::min<std::size_t>(ring_bytes_ / 8, 32 * 1024); }
  [[nodiscard]] std::size_t room(const Out& out) const { return ring_bytes_ - (out.written - out.read); }
  /// Returns whether a rank will neither write nor read any more.
  [[nodiscard]] bool gone(int peer) const {
    return segment_->seat(peer).stage.load(std::memory_order_seq_cst) >= Seat::left || processes_.ended(peer);
  }

  std::shared_ptr<const Segment> segment_;
  int rank_;
  Processes processes_;
  Meetings meetings_;
  std::size_t ring_bytes_;
  std::vector<int> world_ranks_;
  std::optional<Pipe> pipe_;
  std::vector<Bell> bells_;
  std::vector<In> in_;
  std::vector<Out> out_;
  Silence silence_;
  std::optional<int> silent_;
  std::optional<Heart> heart_;  // if all ranks of the world are on this host
};

static_assert(stream::Links<Rings>);

}  // namespace pdp::comm::shm
