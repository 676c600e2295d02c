#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include <pdp/comm/schedule.hpp>
#include <pdp/comm/shm/segment.hpp>
#include <pdp/comm/transport.hpp>

namespace pdp::comm::shm {

/// All-reduce and barrier of a world whose ranks share memory: one rank's part, moved on whenever it is asked to.
///
/// Values travel in pieces. Each rank copies a piece of its own to a slot of its board. Then either every rank adds up all of the piece (a
/// short one, or two ranks: one exchange), or each adds up its share of it, puts the sum to its own slot, and takes the others' shares from
/// theirs (each byte crosses twice, however many ranks there are). In both, values are added in the order of ranks, so all ranks and all
/// runs have the same bits. A slot is written again once all ranks have finished with the piece that was there.
class Together {
 public:
  Together(const Segment& segment, int rank) : segment_{&segment}, rank_{rank}, size_{segment.size()} {}

  [[nodiscard]] bool takes(const Envelope& call) const {
    return call.channel == Envelope::world && (call.verb == Verb::all_reduce || call.verb == Verb::barrier);
  }
  [[nodiscard]] GroupRequest* request() const { return request_; }
  /// What has gone wrong, if anything has.
  [[nodiscard]] std::optional<Failure>& fault() { return fault_; }

  void begin(GroupRequest& request) {
    request_ = &request;
    const std::size_t bytes = request.envelope.bytes;
    pieces_ = std::max<std::uint64_t>(1, (bytes + Slot::capacity - 1) / Slot::capacity);
    shared_out_ = size_ > 2 && bytes > whole_up_to;
    commutes_ = request.envelope.reduction != Reduction::min && request.envelope.reduction != Reduction::max;  // not to the bit: zeros, NaN
    copied_ = summed_ = taken_ = 0;
    arrived_ = 0;
  }
  void drop() { request_ = nullptr; }

  /// Moves what can be moved, and says whether anything was.
  bool advance() {
    bool moved = false;
    while (request_ != nullptr && !fault_ && step()) moved = true;
    return moved;
  }
  /// Whether advance() would move something.
  [[nodiscard]] bool ready() const {
    if (request_ == nullptr) return false;
    if (copied_ < pieces_ && may_copy()) return true;
    if (shared_out_ && taken_ < summed_ && behind(&Board::summed, number(taken_)) < 0) return true;
    return (shared_out_ ? summed_ : taken_) < copied_ && absent(shared_out_ ? summed_ : taken_, 0) == size_;
  }
  /// A rank that the request waits for; -1 if there is none.
  [[nodiscard]] int missing() const {
    if (request_ == nullptr) return -1;
    const std::uint64_t next = shared_out_ ? summed_ : taken_;
    if (next < copied_)
      if (const int rank = absent(next, 0); rank < size_) return rank;
    if (shared_out_ && taken_ < summed_)
      if (const int rank = behind(&Board::summed, number(taken_)); rank >= 0) return rank;
    return copied_ < pieces_ ? behind(&Board::taken, number(copied_) - Board::slots) : -1;
  }

 private:
  static constexpr std::size_t whole_up_to = 4 * 1024;  // bytes

  [[nodiscard]] std::uint64_t number(std::uint64_t piece) const { return first_ + piece; }
  [[nodiscard]] Slot& slot(int rank, std::uint64_t piece) const { return segment_->board(rank).slot[number(piece) % Board::slots]; }
  [[nodiscard]] std::size_t size_of(std::uint64_t piece) const {
    return std::min<std::size_t>(Slot::capacity, request_->envelope.bytes - piece * Slot::capacity);
  }
  [[nodiscard]] std::byte* values(std::uint64_t piece) const { return request_->values + piece * Slot::capacity; }
  [[nodiscard]] static std::byte* bytes_of(Slot& slot, std::size_t bytes) {
    return bytes <= slot.few.size() ? slot.few.data() : slot.many.data();
  }

  /// The first rank, from `from` on, whose piece is not there yet; the number of ranks if all are.
  [[nodiscard]] int absent(std::uint64_t piece, int from) const {
    for (; from < size_; ++from)
      if (from != rank_ && slot(from, piece).piece.load(std::memory_order_seq_cst) != number(piece)) break;
    return from;
  }
  /// A rank that has not come as far as a piece; -1 if all have.
  [[nodiscard]] int behind(std::atomic<std::uint64_t> Board::*counter, std::uint64_t piece) const {
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_ && (segment_->board(rank).*counter).load(std::memory_order_seq_cst) < piece) return rank;
    return -1;
  }
  /// Numbers start at 1, so those before the first slots were used are below what anybody has taken.
  [[nodiscard]] bool may_copy() const {
    const std::uint64_t next = number(copied_);
    return next <= all_took_ + Board::slots || behind(&Board::taken, next - Board::slots) < 0;
  }

  bool step() {
    bool moved = false;
    if (copied_ < pieces_ && may_copy()) {
      copy_in();
      moved = true;
    }
    if (std::uint64_t& next = shared_out_ ? summed_ : taken_; next < copied_) {
      arrived_ = absent(next, arrived_);
      if (arrived_ == size_) {
        arrived_ = 0;
        if (next == 0) compare();
        if (fault_) return true;
        shared_out_ ? sum_share() : sum_whole();
        moved = true;
      }
    }
    if (shared_out_ && taken_ < summed_ && behind(&Board::summed, number(taken_)) < 0) {
      take_shares();
      moved = true;
    }
    if (taken_ == pieces_) finish();
    return moved;
  }

  void copy_in() {
    Slot& own = slot(rank_, copied_);
    const std::size_t bytes = size_of(copied_);
    own.envelope = request_->envelope;
    if (bytes > 0) std::memcpy(bytes_of(own, bytes), values(copied_), bytes);
    own.piece.store(number(copied_), std::memory_order_seq_cst);
    wake();
    ++copied_;
  }

  /// All envelopes of the call are there.
  void compare() {
    for (int rank = 0; rank < size_; ++rank)
      if (const Envelope& theirs = slot(rank, 0).envelope; theirs != request_->envelope) {
        fault_ = mismatch(request_->envelope, rank_, theirs, rank);
        return;
      }
  }

  /// Leaves the combination of bytes [begin, begin + bytes) of all ranks' pieces in this rank's own values.
  void combine(std::uint64_t piece, std::size_t begin, std::size_t bytes) {
    if (request_->combine == nullptr || bytes == 0) return;
    const std::size_t whole = size_of(piece);
    std::byte* const sum = values(piece) + begin;
    const auto part = [&](int rank) { return bytes_of(slot(rank, piece), whole) + begin; };
    if (size_ == 2 && commutes_) return request_->combine(sum, part(1 - rank_), bytes);
    if (rank_ != 0) std::memcpy(sum, part(0), bytes);
    for (int rank = 1; rank < size_; ++rank) request_->combine(sum, part(rank), bytes);
  }

  void sum_whole() {
    combine(taken_, 0, size_of(taken_));
    took();
  }

  /// Where a rank's share of a piece begins, in bytes.
  [[nodiscard]] std::size_t share(std::uint64_t piece, int rank) const {
    return block_begin(size_of(piece) / request_->element, size_, rank) * request_->element;
  }
  void sum_share() {
    const std::size_t begin = share(summed_, rank_), bytes = share(summed_, rank_ + 1) - begin;
    combine(summed_, begin, bytes);
    // Nobody else reads this part of the slot as a value of this rank.
    if (bytes > 0) std::memcpy(slot(rank_, summed_).many.data() + begin, values(summed_) + begin, bytes);
    segment_->board(rank_).summed.store(number(summed_), std::memory_order_seq_cst);
    wake();
    ++summed_;
  }
  void take_shares() {
    for (int rank = 0; rank < size_; ++rank) {
      const std::size_t begin = share(taken_, rank), bytes = share(taken_, rank + 1) - begin;
      if (rank != rank_ && bytes > 0) std::memcpy(values(taken_) + begin, slot(rank, taken_).many.data() + begin, bytes);
    }
    took();
  }

  void took() {
    segment_->board(rank_).taken.store(number(taken_), std::memory_order_seq_cst);
    if (pieces_ >= Board::slots) wake();  // else nobody sleeps for want of a slot
    ++taken_;
  }

  void finish() {
    // All ranks have begun this call, so they have finished with all pieces of those before it.
    all_took_ = first_ - 1;
    first_ += pieces_;
    std::exchange(request_, nullptr)->done = true;
  }

  void wake() {
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_) segment_->seat(rank).parking.wake();
  }

  const Segment* segment_;
  int rank_;
  int size_;
  std::uint64_t first_ = 1;     // number of the first piece of the call, or of the next one
  std::uint64_t all_took_ = 0;  // every rank has finished with this piece, and with those before it

  GroupRequest* request_ = nullptr;
  std::uint64_t pieces_ = 0, copied_ = 0, summed_ = 0, taken_ = 0;  // of the call
  int arrived_ = 0;                                                 // ranks, from the first on, whose next piece is known to be there
  bool shared_out_ = false;                                         // whether each rank adds up a share
  bool commutes_ = true;
  std::optional<Failure> fault_;
};

}  // namespace pdp::comm::shm
