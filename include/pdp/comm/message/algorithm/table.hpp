#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <pdp/core/random.hpp>

namespace pdp::comm::algorithm {

/// The algorithms for an all-reduce by messages.
enum class AllReduce : unsigned char { one_shot, recursive_doubling, rabenseifner, ring };
inline constexpr std::array all_reduce_names{"one_shot", "recursive_doubling", "rabenseifner", "ring"};

/// A row of the table: the algorithm for up to `ranks` ranks and up to `bytes` bytes.
struct Choice {
  int ranks;
  std::size_t bytes;
  AllReduce algorithm;
};

inline constexpr int any_ranks = std::numeric_limits<int>::max();
inline constexpr std::size_t any_bytes = std::numeric_limits<std::size_t>::max();

/// The table. The first matching row is used. Rows are sorted by ranks, then by bytes. `tune --write` (bench/tune.cpp) measures the
/// algorithms on the network at hand and writes new rows. All ranks of a job must have the same rows; the handshake checks this.
inline constexpr std::array all_reduce_choices{
    Choice{2, 256 * 1024, AllReduce::one_shot},
    Choice{2, any_bytes, AllReduce::ring},
    Choice{3, 1024, AllReduce::recursive_doubling},
    Choice{3, 256 * 1024, AllReduce::one_shot},
    Choice{3, any_bytes, AllReduce::ring},
    Choice{any_ranks, 64 * 1024, AllReduce::recursive_doubling},
    Choice{any_ranks, 4096 * 1024, AllReduce::rabenseifner},
    Choice{any_ranks, any_bytes, AllReduce::ring},
};

/// Returns the algorithm for an all-reduce of `bytes` bytes on `ranks` ranks.
constexpr AllReduce choose(int ranks, std::size_t bytes) {
  for (const Choice& each : all_reduce_choices)
    if (ranks <= each.ranks && bytes <= each.bytes) return each.algorithm;
  return AllReduce::ring;
}

/// Returns a number that differs between programs with different rows.
constexpr std::uint64_t digest_of_choices() {
  std::uint64_t digest = 0;
  for (const Choice& each : all_reduce_choices)
    for (const std::uint64_t part : {std::uint64_t(each.ranks), std::uint64_t{each.bytes}, std::uint64_t(each.algorithm)})
      digest = random::mix(digest ^ part);
  return digest;
}

static_assert(all_reduce_choices.back().ranks == any_ranks && all_reduce_choices.back().bytes == any_bytes,
              "the last row must match every call");

}  // namespace pdp::comm::algorithm
