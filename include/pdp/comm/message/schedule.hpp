#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// One step of a collective on one rank: a message, or a copy or reduction within the rank, between the call's buffers. Offsets and counts
/// are in elements.
///
/// Steps of one round are under way together; a round begins when the one before it is complete on this rank. What a round does within the
/// rank comes before its messages, one after another.
struct Step {
  enum class Action : std::uint8_t { copy, add, send, receive, combine, together };  // combine: receive, and add
  enum class Buffer : std::uint8_t { input, output, scratch };

  Action action = Action::copy;
  Buffer buffer = Buffer::output;  // sent from, received into, copied to
  Buffer source = Buffer::input;   // of what is copied or added
  int round = 0;
  int peer = -1;  // rank in the group
  std::size_t offset = 0;
  std::size_t count = 0;
  std::size_t source_offset = 0;
};

/// A collective as data: what one rank does, in rounds. An algorithm is a function that writes one, and nothing else; one executor runs
/// them all.
class Schedule {
 public:
  constexpr void clear() {
    steps_.clear();
    round_ = 0;
    scratch_ = 0;
    numbering_ = {};
  }

  constexpr void copy(Step::Buffer to, std::size_t offset, Step::Buffer from, std::size_t from_offset, std::size_t count) {
    local(Step::Action::copy, to, offset, from, from_offset, count);
  }
  /// Reduces values of this rank into others of its own.
  constexpr void add(Step::Buffer to, std::size_t offset, Step::Buffer from, std::size_t from_offset, std::size_t count) {
    local(Step::Action::add, to, offset, from, from_offset, count);
  }
  constexpr void send(int peer, Step::Buffer from, std::size_t offset, std::size_t count) {
    message(Step::Action::send, peer, from, offset, count);
  }
  constexpr void receive(int peer, Step::Buffer into, std::size_t offset, std::size_t count) {
    message(Step::Action::receive, peer, into, offset, count);
  }
  constexpr void combine(int peer, Step::Buffer into, std::size_t offset, std::size_t count) {
    message(Step::Action::combine, peer, into, offset, count);
  }
  /// A reduction of all ranks of the group that share memory, by a GroupTransport, in place.
  constexpr void together(Step::Buffer buffer, std::size_t count) {
    steps_.push_back({.action = Step::Action::together, .buffer = buffer, .round = round_, .count = count});
    if (buffer == Step::Buffer::scratch && count > scratch_) scratch_ = count;
  }
  /// Peers of the messages that follow are places in this list of ranks, until clear(); empty: ranks of the group. Borrowed.
  constexpr void number(std::span<const int> ranks) { numbering_ = ranks; }
  constexpr void next_round() { ++round_; }

  [[nodiscard]] constexpr const std::vector<Step>& steps() const { return steps_; }
  /// Elements of scratch memory that the steps use.
  [[nodiscard]] constexpr std::size_t scratch() const { return scratch_; }

 private:
  constexpr void local(Step::Action action, Step::Buffer to, std::size_t offset, Step::Buffer from, std::size_t from_offset,
                       std::size_t count) {
    steps_.push_back(
        {.action = action, .buffer = to, .source = from, .round = round_, .offset = offset, .count = count, .source_offset = from_offset});
    if (to == Step::Buffer::scratch && offset + count > scratch_) scratch_ = offset + count;
  }
  constexpr void message(Step::Action action, int peer, Step::Buffer buffer, std::size_t offset, std::size_t count) {
    const int rank = numbering_.empty() ? peer : numbering_[as_size(peer)];
    steps_.push_back({.action = action, .buffer = buffer, .round = round_, .peer = rank, .offset = offset, .count = count});
    if (buffer == Step::Buffer::scratch && offset + count > scratch_) scratch_ = offset + count;
  }

  std::vector<Step> steps_;
  int round_ = 0;
  std::size_t scratch_ = 0;
  std::span<const int> numbering_;
};

/// Where a block begins when `count` elements are cut in `parts` blocks whose sizes differ by one at the most.
constexpr std::size_t block_begin(std::size_t count, int parts, int block) {
  const std::size_t n = as_size(parts), b = as_size(block);
  return count / n * b + (count % n < b ? count % n : b);
}
constexpr std::size_t block_size(std::size_t count, int parts, int block) {
  return block_begin(count, parts, block + 1) - block_begin(count, parts, block);
}

/// How the whole of a call is cut into one shard for each rank: all of one size, or each of its own.
class Shards {
 public:
  constexpr Shards() = default;
  constexpr explicit Shards(std::size_t each) : each_{each} {}
  /// `begins`: of every shard in turn, and the end of the last one. Borrowed.
  constexpr explicit Shards(std::span<const std::size_t> begins) : begins_{begins} {}

  [[nodiscard]] constexpr std::size_t begin(int rank) const {
    const auto r = as_size(rank);
    return begins_.empty() ? r * each_ : begins_[r];
  }
  [[nodiscard]] constexpr std::size_t size(int rank) const { return begin(rank + 1) - begin(rank); }
  [[nodiscard]] constexpr std::size_t largest(int ranks) const {
    std::size_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) most = size(rank) > most ? size(rank) : most;
    return most;
  }

 private:
  std::size_t each_ = 0;
  std::span<const std::size_t> begins_{};
};

static_assert(block_begin(10, 4, 0) == 0 && block_begin(10, 4, 2) == 6 && block_begin(10, 4, 4) == 10);

}  // namespace pdp::comm
