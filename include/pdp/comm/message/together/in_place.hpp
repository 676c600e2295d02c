#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include <pdp/comm/message/transport.hpp>
#include <pdp/core/buffer.hpp>

namespace pdp::comm::together {

/// One rank's share of an all-reduce over values that all ranks can access in place. The rank sums its share of all ranks' values, in the
/// order of ranks, and writes the sum to all of them. No other rank accesses that share.
class InPlace {
 public:
  /// `values`: the beginning of each rank's values; borrowed. Shares are whole cache lines, so that no two ranks write to the same line.
  void begin(const GroupRequest& request, const std::vector<std::byte*>& values, std::size_t rank) {
    combine_ = request.combine;
    values_ = &values;
    rank_ = rank;
    const std::size_t bytes = request.envelope.bytes, lines = (bytes + alignment - 1) / alignment;
    at_ = std::min(bytes, lines * rank / values.size() * alignment);
    end_ = std::min(bytes, lines * (rank + 1) / values.size() * alignment);
  }
  [[nodiscard]] bool done() const { return at_ == end_; }

  /// Reduces the next part of the share, at most bytes_at_once bytes.
  void step() {
    const std::size_t until = std::min(end_, at_ + bytes_at_once);
    for (; at_ < until; at_ += std::min(block, until - at_)) sum(at_, std::min(block, until - at_));
  }

 private:
  static constexpr std::size_t block = 16 * 1024;  // bytes that stay in a core's L1 cache between the sum and its copies
  static constexpr std::size_t bytes_at_once = 512 * 1024;

  void sum(std::size_t begin, std::size_t bytes) {
    const std::size_t ranks = values_->size();
    const auto part = [&](std::size_t rank) { return (*values_)[rank] + begin; };
    if (ranks == 2) {
      combine_(part(rank_), part(1 - rank_), bytes);
      std::memcpy(part(1 - rank_), part(rank_), bytes);
      return;
    }
    std::byte* const total = rank_ == 0 ? part(0) : scratch_.data();
    if (rank_ != 0) std::memcpy(total, part(0), bytes);
    for (std::size_t rank = 1; rank < ranks; ++rank) combine_(total, part(rank), bytes);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (part(rank) != total) std::memcpy(part(rank), total, bytes);
  }

  Combine combine_ = nullptr;
  const std::vector<std::byte*>* values_ = nullptr;
  std::size_t rank_ = 0, at_ = 0, end_ = 0;
  alignas(alignment) std::array<std::byte, block> scratch_;
};

}  // namespace pdp::comm::together
