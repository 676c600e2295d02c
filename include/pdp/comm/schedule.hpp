#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pdp::comm {

/// One step of a collective on one rank: a message or a local copy, between the call's buffers. Offsets and counts are in elements.
///
/// Steps of one round are under way together; a round begins when the one before it is complete on this rank. Copies of a round come before
/// its messages.
struct Step {
  enum class Action : std::uint8_t { copy, send, receive, combine, together };  // combine: receive, and reduce into `to`
  enum class Buffer : std::uint8_t { input, output, scratch };

  Action action = Action::copy;
  Buffer buffer = Buffer::output;  // sent from, received into, copied to
  Buffer source = Buffer::input;   // of a copy
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
  }

  constexpr void copy(Step::Buffer to, std::size_t offset, Step::Buffer from, std::size_t from_offset, std::size_t count) {
    steps_.push_back({.action = Step::Action::copy,
                      .buffer = to,
                      .source = from,
                      .round = round_,
                      .offset = offset,
                      .count = count,
                      .source_offset = from_offset});
    if (to == Step::Buffer::scratch && offset + count > scratch_) scratch_ = offset + count;
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
  /// The whole call, by a GroupTransport, in place.
  constexpr void together(std::size_t count) {
    steps_.push_back({.action = Step::Action::together, .buffer = Step::Buffer::output, .round = round_, .count = count});
  }
  constexpr void next_round() { ++round_; }

  [[nodiscard]] constexpr const std::vector<Step>& steps() const { return steps_; }
  /// Elements of scratch memory that the steps use.
  [[nodiscard]] constexpr std::size_t scratch() const { return scratch_; }

 private:
  constexpr void message(Step::Action action, int peer, Step::Buffer buffer, std::size_t offset, std::size_t count) {
    steps_.push_back({.action = action, .buffer = buffer, .round = round_, .peer = peer, .offset = offset, .count = count});
    if (buffer == Step::Buffer::scratch && offset + count > scratch_) scratch_ = offset + count;
  }

  std::vector<Step> steps_;
  int round_ = 0;
  std::size_t scratch_ = 0;
};

/// Where a block begins when `count` elements are cut in `parts` blocks whose sizes differ by one at the most.
constexpr std::size_t block_begin(std::size_t count, int parts, int block) {
  const std::size_t n = static_cast<std::size_t>(parts), b = static_cast<std::size_t>(block);
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
    const auto r = static_cast<std::size_t>(rank);
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
