#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// One step of a collective on one rank: a message, a copy or reduction within the rank, or a reduction in shared memory. Steps work on the
/// call's buffers. Offsets and counts are in elements.
///
/// Steps of one round are in flight together. A round begins when the previous one is complete on this rank. An algorithm lists the copies
/// and reductions of a round before its messages. These copies and reductions run one after another.
struct Step {
  /// `combine` receives values and adds them to those in the buffer. `together`: see Schedule::together.
  enum class Action : std::uint8_t { copy, add, send, receive, combine, together };
  enum class Buffer : std::uint8_t { input, output, scratch };

  Action action = Action::copy;
  Buffer buffer = Buffer::output;  // sent from, received into, copied or added to
  Buffer source = Buffer::input;   // source of a copy or add
  int round = 0;
  int peer = -1;  // rank in the group
  std::size_t offset = 0;
  std::size_t count = 0;
  std::size_t source_offset = 0;
};

/// A collective as data: the steps of one rank, in rounds. An algorithm is a function that only writes a schedule. One executor (Call) runs
/// all schedules.
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
  /// Adds a reduction of values of this rank into other values of this rank.
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
  /// Adds an in-place reduction over all ranks of the group that share memory, carried out by a GroupTransport.
  constexpr void together(Step::Buffer buffer, std::size_t count) {
    steps_.push_back({.action = Step::Action::together, .buffer = buffer, .round = round_, .count = count});
    if (buffer == Step::Buffer::scratch && count > scratch_) scratch_ = count;
  }
  /// Makes the peers of later messages indices into `ranks`, until clear(). If `ranks` is empty, peers are ranks of the group. Borrows
  /// `ranks`.
  constexpr void number(std::span<const int> ranks) { numbering_ = ranks; }
  constexpr void next_round() { ++round_; }

  [[nodiscard]] constexpr const std::vector<Step>& steps() const { return steps_; }
  /// Returns the number of elements of scratch memory that the steps use.
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
