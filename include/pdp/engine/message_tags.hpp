#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <pdp/core/cast.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::engine {

/// The kinds of an engine's calls. The messages of each kind have tags of their own.
enum class Purpose : std::uint8_t { training, evaluation };

/// The tags of messages. They distinguish the messages between two ranks that may be in flight at once. A tag also contains the number of
/// the call, as far as it fits in tags that every backend supports (at most 32767). So messages of ranks that do not make the same calls do
/// not match. Calls of the two purposes are counted separately, since a rank that exchanges messages in steps may exchange none in
/// evaluations. Such a rank counts fewer evaluations than its peers.
class MessageTags {
 public:
  MessageTags(int micro_batches, int layers) : micro_batches_{micro_batches}, boundaries_{layers + 1} {}

  /// Begins a call of the engine. Every call counts, also one that fails.
  void begin_call(Purpose purpose) {
    purpose_ = purpose;
    ++calls_[as_size(purpose)];
  }
  /// Returns the tag of a message in the current call.
  [[nodiscard]] int operator()(const plan::Instruction& i) const {
    const std::int64_t kinds = std::int64_t{2} * micro_batches_ * boundaries_;
    const std::int64_t room = std::max<std::int64_t>(1, 32767 / kinds), count = calls_[as_size(purpose_)];
    // If only two numbers of calls fit, they distinguish a step from the next one.
    const std::int64_t call = (room > 2 ? 2 * count + static_cast<std::int64_t>(purpose_) : count) % room;
    const std::int64_t kind = (std::int64_t{i.micro_batch} * boundaries_ + i.first) * 2 + (i.tensor == plan::Tensor::gradient ? 1 : 0);
    return as_int(call * kinds + kind);
  }

 private:
  int micro_batches_, boundaries_;
  Purpose purpose_ = Purpose::training;  // of the last call
  std::array<std::int64_t, 2> calls_{};  // [purpose]
};

}  // namespace pdp::engine
