#pragma once

#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::plan::detail {

/// A message that a rank of a rehearsal has started.
struct RehearsedMessage {
  Instruction start;
  int number = 0;  // among those with an equal start: the one that it meets has the same
  double at = 0;   // the rank's clock
  bool waited = false;
  int before = -1;  // the message of the same micro-batch that was started before it
};

/// The messages of one rank. Those of one pair, group, tensor, micro-batch and boundary meet in the order in which they are started.
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
  /// Returns the last message with that start, or the one with that number among them, or null.
  constexpr RehearsedMessage* last(const Instruction& start) { return find(start, any); }
  constexpr RehearsedMessage* numbered(const Instruction& start, int number) { return find(start, number); }
  /// Whether a message with that start is on its way.
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

  // No template: a compiler may make those too late for a constant expression.
  constexpr RehearsedMessage* find(const Instruction& start, int number) {
    const auto m = as_size(start.micro_batch);
    for (int each = m < last_of_.size() ? last_of_[m] : -1; each >= 0; each = all_[as_size(each)].before)
      if (RehearsedMessage& message = all_[as_size(each)]; message.start == start && (number == any || message.number == number))
        return &message;
    return nullptr;
  }

  std::vector<RehearsedMessage> all_;
  std::vector<int> last_of_;  // [micro-batch]: its last message; -1: none
};

}  // namespace pdp::plan::detail
