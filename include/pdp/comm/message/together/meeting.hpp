#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/together/board.hpp>
#include <pdp/comm/message/together/in_place.hpp>
#include <pdp/comm/message/together/partner.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::together {

/// One rank's part in a shared-memory rendezvous: an all-reduce or barrier of a group whose ranks share memory.
///
/// Values travel in pieces. Each rank copies its piece to a slot of its board. A slot is reused once all ranks have finished with its
/// piece. There are three ways to sum:
/// - Whole pieces, if values are short or there are two ranks: every rank sums the whole piece. This takes one exchange.
/// - Shares: each rank sums its share of the piece, writes the sum to its own slot, and copies the other shares from the other slots. Each
///   rank reads about twice the size of a piece from the slots of others, however many ranks there are.
/// - In place, if all ranks can access the values of all: each rank sums its share there, and nothing is copied to slots.
///
/// All three add values in the order of ranks, so all ranks and all runs get the same bits.
template <Sources S, class Bell>
class Meeting {
 public:
  /// `partners`: all ranks of the group, including this one. `sources`: finds values of this rank; borrowed.
  Meeting(std::uint64_t channel, std::vector<Partner<Bell>> partners, int rank, const S& sources)
      : channel_{channel},
        partners_{std::move(partners)},
        rank_{rank},
        size_{as_int(partners_.size())},
        sources_{&sources},
        values_(partners_.size()) {}

  [[nodiscard]] std::uint64_t channel() const { return channel_; }
  [[nodiscard]] GroupRequest* request() const { return request_; }
  /// Returns the failure that this rank has found, if any.
  [[nodiscard]] std::optional<Failure>& fault() { return fault_; }

  /// Starts a call. `request` is borrowed until its `done` is set, or until drop().
  void begin(GroupRequest& request) {
    request_ = &request;
    const std::size_t bytes = request.envelope.bytes;
    pieces_ = std::max<std::uint64_t>(1, (bytes + Slot::capacity - 1) / Slot::capacity);
    shared_out_ = size_ > 2 && bytes > whole_up_to;
    way_ = bytes > whole_up_to ? Way::open : Way::in_slots;
    source_ = way_ == Way::open ? sources_->find(request.values, bytes) : Source{};
    copied_ = summed_ = taken_ = 0;
    arrived_ = 0;
  }
  /// Forgets the call in flight, after a failure.
  void drop() { request_ = nullptr; }

  /// Moves everything that can move and returns whether anything moved.
  bool advance() {
    bool moved = false;
    while (request_ != nullptr && !fault_ && step()) moved = true;
    return moved;
  }
  /// Returns whether advance() would move something.
  [[nodiscard]] bool ready() const {
    if (request_ == nullptr) return false;
    if (way_ == Way::in_place) return !in_place_.done() || behind(&Board::summed, first_) < 0;
    if (copied_ < to_copy() && may_copy()) return true;
    if (way_ == Way::open) return copied_ > 0 && absent(0, 0) == size_;
    if (shared_out_ && taken_ < summed_ && behind(&Board::summed, number(taken_)) < 0) return true;
    return (shared_out_ ? summed_ : taken_) < copied_ && absent(shared_out_ ? summed_ : taken_, 0) == size_;
  }
  /// Returns a rank of the world that the request waits for, or -1.
  [[nodiscard]] int missing() const {
    const int rank = request_ == nullptr ? -1 : missing_here();
    return rank < 0 ? -1 : partners_[as_size(rank)].world_rank;
  }

 private:
  /// How values travel: through slots or in place; `open` until the first pieces of all ranks have shown the location of their values.
  enum class Way : unsigned char { open, in_slots, in_place };
  static constexpr std::size_t whole_up_to = 4 * 1024;  // bytes

  [[nodiscard]] Board& board(int rank) const { return *partners_[as_size(rank)].board; }
  [[nodiscard]] std::uint64_t number(std::uint64_t piece) const { return first_ + piece; }
  [[nodiscard]] Slot& slot(int rank, std::uint64_t piece) const { return board(rank).slot[number(piece) % Board::slot_count]; }
  [[nodiscard]] std::size_t size_of(std::uint64_t piece) const {
    return std::min<std::size_t>(Slot::capacity, request_->envelope.bytes - piece * Slot::capacity);
  }
  [[nodiscard]] std::byte* values(std::uint64_t piece) const { return request_->values + piece * Slot::capacity; }
  [[nodiscard]] static std::byte* bytes_of(Slot& slot, std::size_t bytes) {
    return bytes <= slot.few.size() ? slot.few.data() : slot.many.data();
  }

  /// Returns the number of pieces that this rank publishes. If all ranks can access its values, it publishes only the first piece, without
  /// values.
  [[nodiscard]] std::uint64_t to_copy() const { return source_.memory != 0 ? 1 : pieces_; }
  /// Returns the first rank, starting with `from`, that has not published the piece; the number of ranks if all have.
  [[nodiscard]] int absent(std::uint64_t piece, int from) const {
    for (; from < size_; ++from)
      if (from != rank_ && slot(from, piece).piece.load(std::memory_order_seq_cst) != number(piece)) break;
    return from;
  }
  /// Returns a rank whose counter has not reached the piece, or -1 if all have.
  [[nodiscard]] int behind(std::atomic<std::uint64_t> Board::*counter, std::uint64_t piece) const {
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_ && (board(rank).*counter).load(std::memory_order_seq_cst) < piece) return rank;
    return -1;
  }
  /// Returns whether the slot for this rank's next piece is free: all ranks have finished with the earlier piece in it. The first piece of
  /// a group has number 1, so all slots are free at first.
  [[nodiscard]] bool may_copy() const {
    const std::uint64_t next = number(copied_);
    return next <= all_took_ + Board::slot_count || behind(&Board::taken, next - Board::slot_count) < 0;
  }
  [[nodiscard]] int missing_here() const {
    if (way_ == Way::in_place) return behind(&Board::summed, first_);
    const std::uint64_t next = shared_out_ ? summed_ : taken_;
    if (next < copied_)
      if (const int rank = absent(next, 0); rank < size_) return rank;
    if (shared_out_ && taken_ < summed_)
      if (const int rank = behind(&Board::summed, number(taken_)); rank >= 0) return rank;
    return copied_ < to_copy() ? behind(&Board::taken, number(copied_) - Board::slot_count) : -1;
  }

  bool step() {
    if (way_ == Way::in_place) return step_in_place();
    bool moved = false;
    if (copied_ < to_copy() && may_copy()) {
      copy_in();
      moved = true;
    }
    if (const std::uint64_t& next = shared_out_ ? summed_ : taken_; next < copied_) {
      arrived_ = absent(next, arrived_);
      if (arrived_ == size_) {
        arrived_ = 0;
        if (next == 0) compare();
        if (fault_) return true;
        if (way_ == Way::open && !decide()) return true;
        shared_out_ ? sum_share() : sum_whole();
        moved = true;
      }
    }
    if (shared_out_ && taken_ < summed_ && behind(&Board::summed, number(taken_)) < 0) {
      take_shares();
      moved = true;
    }
    if (taken_ == pieces_) finish(pieces_);
    return moved;
  }

  void copy_in() {
    Slot& own = slot(rank_, copied_);
    const std::size_t bytes = size_of(copied_);
    own.envelope = request_->envelope;
    if (copied_ == 0 && way_ == Way::open) own.source = source_;
    if (bytes > 0 && source_.memory == 0) std::memcpy(bytes_of(own, bytes), values(copied_), bytes);
    own.piece.store(number(copied_), std::memory_order_seq_cst);
    wake();
    ++copied_;
  }

  /// Compares the envelopes of all ranks, which have all published their first pieces.
  void compare() {
    for (int rank = 0; rank < size_; ++rank) {
      if (const Envelope& theirs = slot(rank, 0).envelope; theirs != request_->envelope) {
        fault_ = mismatch(request_->envelope, partners_[as_size(rank_)].world_rank, theirs, partners_[as_size(rank)].world_rank);
        return;
      }
    }
  }

  /// Decides how values travel, once all ranks have shown the location of their values. All ranks come to the same conclusion. Returns
  /// false if the published pieces cannot be summed.
  bool decide() {
    bool all_own = true, all_there = true;
    for (int rank = 0; rank < size_; ++rank) {
      const std::uint64_t memory = slot(rank, 0).source.memory;
      all_own = all_own && memory == 0;
      all_there = all_there && memory != 0 && memory == slot(0, 0).source.memory;
    }
    if (all_there) {
      for (std::size_t rank = 0; rank < values_.size(); ++rank)
        values_[rank] = sources_->at(slot(as_int(rank), 0).source, partners_[rank].world_rank);
      in_place_.begin(*request_, values_, as_size(rank_));
      way_ = Way::in_place;
      return false;
    }
    way_ = Way::in_slots;
    if (all_own) return true;
    // Not all values lie in one shared memory. All ranks restart with their first piece, with numbers after those already published.
    source_ = {};
    copied_ = 0;
    first_ += Board::slot_count;
    took(first_ - 1);
    wake();
    return false;
  }

  bool step_in_place() {
    if (!in_place_.done()) {
      in_place_.step();
      if (in_place_.done()) {
        board(rank_).summed.store(first_, std::memory_order_seq_cst);
        wake();
      }
      return true;
    }
    if (behind(&Board::summed, first_) >= 0) return false;
    took(first_);
    finish(1);
    return true;
  }

  /// Writes the combination of bytes [begin, begin + bytes) of all ranks' pieces to this rank's own values.
  void combine(std::uint64_t piece, std::size_t begin, std::size_t bytes) {
    if (request_->combine == nullptr || bytes == 0) return;
    const std::size_t whole = size_of(piece);
    std::byte* const sum = values(piece) + begin;
    const auto part = [&](int rank) { return bytes_of(slot(rank, piece), whole) + begin; };
    if (size_ == 2) return request_->combine(sum, part(1 - rank_), bytes);
    if (rank_ != 0) std::memcpy(sum, part(0), bytes);
    for (int rank = 1; rank < size_; ++rank) request_->combine(sum, part(rank), bytes);
  }

  void sum_whole() {
    combine(taken_, 0, size_of(taken_));
    took_piece();
  }

  /// Returns the offset of a rank's share of a piece, in bytes.
  [[nodiscard]] std::size_t share(std::uint64_t piece, int rank) const {
    return block_begin(size_of(piece) / request_->element, size_, rank) * request_->element;
  }
  void sum_share() {
    const std::size_t begin = share(summed_, rank_), bytes = share(summed_, rank_ + 1) - begin;
    combine(summed_, begin, bytes);
    // Only this rank sums this share, so no other rank reads its original values in the slot.
    if (bytes > 0) std::memcpy(slot(rank_, summed_).many.data() + begin, values(summed_) + begin, bytes);
    board(rank_).summed.store(number(summed_), std::memory_order_seq_cst);
    wake();
    ++summed_;
  }
  void take_shares() {
    for (int rank = 0; rank < size_; ++rank) {
      const std::size_t begin = share(taken_, rank), bytes = share(taken_, rank + 1) - begin;
      if (rank != rank_ && bytes > 0) std::memcpy(values(taken_) + begin, slot(rank, taken_).many.data() + begin, bytes);
    }
    took_piece();
  }

  void took(std::uint64_t number) { board(rank_).taken.store(number, std::memory_order_seq_cst); }
  void took_piece() {
    took(number(taken_));
    if (pieces_ >= Board::slot_count) wake();  // with fewer pieces, no rank waits for a free slot
    ++taken_;
  }

  void finish(std::uint64_t pieces) {
    // All ranks have begun this call, so they have finished with all pieces of earlier calls.
    all_took_ = first_ - 1;
    first_ += pieces;
    std::exchange(request_, nullptr)->done = true;
  }

  void wake() {
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_) partners_[as_size(rank)].bell->ring();
  }

  std::uint64_t channel_;
  std::vector<Partner<Bell>> partners_;
  int rank_;
  int size_;
  const S* sources_;
  std::uint64_t first_ = 1;     // number of the first piece of the current or next call
  std::uint64_t all_took_ = 0;  // all ranks have finished with the pieces up to this one

  GroupRequest* request_ = nullptr;
  std::uint64_t pieces_ = 0, copied_ = 0, summed_ = 0, taken_ = 0;  // of the call
  int arrived_ = 0;                                                 // number of leading ranks known to have published their next piece
  bool shared_out_ = false;                                         // whether each rank sums a share
  Way way_ = Way::in_slots;
  Source source_;                   // of this rank's values
  std::vector<std::byte*> values_;  // of all ranks, if all can access them
  InPlace in_place_;
  std::optional<Failure> fault_;
};

}  // namespace pdp::comm::together
