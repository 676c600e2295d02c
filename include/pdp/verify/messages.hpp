#pragma once

#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::plan::detail {

/// A message that a rank has started in a rehearsal.
struct RehearsedMessage {
  Instruction start;
  int number = 0;  // index among the messages with an equal start; the peer's message with the same number matches it
  double at = 0;   // the rank's time at the start
  bool waited = false;
  int before = -1;  // index of the previous message of the same micro-batch; -1: none
};

/// The messages of one rank. Messages with the same pair of ranks, group, tensor, micro-batch and boundary match in the order of their
/// starts.
class RehearsedMessages {
 public:
  explicit constexpr RehearsedMessages(int micro_batches) : last_of_(as_size(micro_batches), -1) {}

  constexpr void start(const Instruction& start, double at) {
    const RehearsedMessage* const earlier = last(start);
    const int number = earlier == nullptr ? 0 : earlier->number + 1;
    int& last = last_of_[as_size(start.micro_batch)];
    all_.push_back({start, number, at, false, last});
    last = as_int(all_.size()) - 1;
  }
  /// last() returns the last message with that start, numbered() the message with that start and number. Both return null if there is none.
  constexpr RehearsedMessage* last(const Instruction& start) { return find(start, any); }
  constexpr RehearsedMessage* numbered(const Instruction& start, int number) { return find(start, number); }
  /// Returns whether a message with that start is in flight.
  [[nodiscard]] constexpr bool is_open(const Instruction& start) {
    const RehearsedMessage* const earlier = last(start);
    return earlier != nullptr && !earlier->waited;
  }
  [[nodiscard]] constexpr bool all_waited() const {
    for (const RehearsedMessage& each : all_)
      if (!each.waited) return false;
    return true;
  }

 private:
  static constexpr int any = -1;

  // Not a template: a compiler may instantiate it too late for a constant expression.
  constexpr RehearsedMessage* find(const Instruction& start, int number) {
    const auto m = as_size(start.micro_batch);
    for (int each = m < last_of_.size() ? last_of_[m] : -1; each >= 0; each = all_[as_size(each)].before)
      if (RehearsedMessage& message = all_[as_size(each)]; message.start == start && (number == any || message.number == number))
        return &message;
    return nullptr;
  }

  std::vector<RehearsedMessage> all_;
  std::vector<int> last_of_;  // [micro-batch]: index of its last message; -1: none
};

}  // namespace pdp::plan::detail
