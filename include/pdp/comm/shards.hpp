#pragma once

#include <cstddef>
#include <span>

#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// Returns the index of the first element of a block, if `count` elements are divided into `parts` blocks with sizes that differ by at most
/// one. `block` may be `parts`, which gives the end of the last block.
constexpr std::size_t block_begin(std::size_t count, int parts, int block) {
  const std::size_t n = as_size(parts), b = as_size(block);
  return count / n * b + (count % n < b ? count % n : b);
}
/// Returns the number of elements of that block.
constexpr std::size_t block_size(std::size_t count, int parts, int block) {
  return block_begin(count, parts, block + 1) - block_begin(count, parts, block);
}

/// The division of all values of a call into one shard per rank. The shards have the same size, or each has a size of its own. Sizes are in
/// elements.
class Shards {
 public:
  constexpr Shards() = default;
  constexpr explicit Shards(std::size_t each) : each_{each} {}
  /// `begins`: the first index of each shard, in the order of ranks, and the end of the last shard. Borrowed.
  constexpr explicit Shards(std::span<const std::size_t> begins) : begins_{begins} {}

  /// Returns the first index of the shard of a rank. The number of ranks gives the end of the last shard.
  [[nodiscard]] constexpr std::size_t begin(int rank) const {
    const auto r = as_size(rank);
    return begins_.empty() ? r * each_ : begins_[r];
  }
  [[nodiscard]] constexpr std::size_t size(int rank) const { return begin(rank + 1) - begin(rank); }
  /// Returns the size of the largest shard, for `ranks` ranks.
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
