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

}  // namespace pdp::comm
