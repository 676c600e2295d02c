#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/shm/processes.hpp>
#include <pdp/comm/shm/segment.hpp>
#include <pdp/comm/shm/together.hpp>
#include <pdp/comm/stream/links.hpp>
#include <pdp/comm/stream/outbox.hpp>

namespace pdp::comm::shm {

/// A ring in shared memory to each other rank and one from it, as the streams that messages travel on. A sender copies into the ring; the
/// receiver takes values out of it where they lie.
class Rings {
 public:
  /// Over memory in which the rings of this rank are mapped, and in which all ranks have taken their seats.
  Rings(std::shared_ptr<const Segment> segment, int rank, Processes processes)
      : segment_{std::move(segment)},
        rank_{rank},
        processes_{std::move(processes)},
        together_{*segment_, rank},
        ring_bytes_{segment_->ring_bytes()} {
    for (int peer = 0; peer < size(); ++peer) {
      in_.push_back({&segment_->counters(peer, rank), segment_->ring(peer, rank)});
      out_.push_back({&segment_->counters(rank, peer), segment_->ring(rank, peer)});
    }
  }

  [[nodiscard]] int size() const { return segment_->size(); }
  [[nodiscard]] bool open(int peer) const { return peer != rank_; }

  [[nodiscard]] Together& together() { return together_; }
  [[nodiscard]] const Together& together() const { return together_; }

  [[nodiscard]] bool unread(int peer) const {
    const In& in = in_[static_cast<std::size_t>(peer)];
    return in.counters->written.load(std::memory_order_acquire) != in.seen;
  }
  bool read(int peer, stream::Inbox& inbox, stream::Strays& strays) {
    In& in = in_[static_cast<std::size_t>(peer)];
    bool moved = false;
    for (int pieces = 0; pieces < pieces_at_once && !inbox.fault() && !inbox.ended(); ++pieces) {
      const bool ended = gone(peer);  // asked first: what it wrote before its end is there then
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
      // A value that does not lie as it must is moved down a little before it is used: that much more is kept from the sender.
      in.counters->read.store(in.taken / alignment * alignment, std::memory_order_seq_cst);
      segment_->seat(peer).parking.wake();
    }
    return moved;
  }

  std::size_t write(int peer, std::span<iovec, 2> parts) {
    if (gone(peer)) return stream::gone;
    Out& out = out_[static_cast<std::size_t>(peer)];
    const std::size_t wanted = parts[0].iov_len + parts[1].iov_len;
    if (room(out) < wanted) out.read = out.counters->read.load(std::memory_order_acquire);
    const std::size_t taken = std::min(wanted, room(out));
    for (std::size_t done = 0; done < taken;) {  // piece by piece, so that the receiver need not wait for the last one
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
      segment_->seat(peer).parking.wake();
    }
    return taken;
  }

  bool wait(std::span<stream::Interest> interests, TimePoint until) {
    const auto ready = [&] {
      bool any = together_.ready();
      for (int peer = 0; peer < size(); ++peer) {
        stream::Interest& interest = interests[static_cast<std::size_t>(peer)];
        const In& in = in_[static_cast<std::size_t>(peer)];
        const Out& out = out_[static_cast<std::size_t>(peer)];
        interest.ready = (interest.read && in.counters->written.load(std::memory_order_seq_cst) != in.seen) ||
                         (interest.write && (room(out) > 0 || out.counters->read.load(std::memory_order_seq_cst) != out.read)) ||
                         ((interest.read || interest.write) && gone(peer));
        any = any || interest.ready;
      }
      return any;
    };
    while (!ready()) {
      const TimePoint now = Clock::now();
      if (now < until) segment_->seat(rank_).parking.sleep(std::min(until, now + Processes::pulse), ready);
      processes_.look();
      if (Clock::now() >= until) return ready();
    }
    return true;
  }

  void leave(TimePoint) noexcept {
    segment_->seat(rank_).stage.store(Seat::left, std::memory_order_seq_cst);
    for (int peer = 0; peer < size(); ++peer) segment_->seat(peer).parking.wake();
  }

 private:
  struct In {
    RingCounters* counters;
    std::byte* bytes;
    std::uint64_t taken = 0;
    std::uint64_t seen = 0;  // what had been written at the last look
  };
  struct Out {
    RingCounters* counters;
    std::byte* bytes;
    std::uint64_t written = 0;
    std::uint64_t read = 0;  // what had been read at the last look
  };
  static constexpr int pieces_at_once = 8;
  static constexpr std::uint64_t alignment = 8;  // of any DType

  [[nodiscard]] std::size_t piece() const { return ring_bytes_ / 8; }
  [[nodiscard]] std::size_t room(const Out& out) const { return ring_bytes_ - static_cast<std::size_t>(out.written - out.read); }
  /// Whether a rank will write and read no more.
  [[nodiscard]] bool gone(int peer) const {
    return segment_->seat(peer).stage.load(std::memory_order_seq_cst) == Seat::left || processes_.ended(peer);
  }

  std::shared_ptr<const Segment> segment_;
  int rank_;
  Processes processes_;
  Together together_;
  std::size_t ring_bytes_;
  std::vector<In> in_;
  std::vector<Out> out_;
};

static_assert(stream::Links<Rings>);

}  // namespace pdp::comm::shm
