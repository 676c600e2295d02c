#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>

#include <pdp/core/cast.hpp>
#include <pdp/core/philox.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

/// Random numbers without state: a number depends on (key, element) alone. So it does not depend on the rank that computes it, on the order
/// of calls, or on how the elements are divided. The generator is Philox4x32-10.
namespace pdp::random {

/// Identifies one stream of numbers. Equal keys give equal numbers on every platform.
struct Key {
  std::uint64_t value = 0;
  friend constexpr bool operator==(const Key&, const Key&) = default;
};

/// The output function of splitmix64 (Steele et al., OOPSLA 2014): each bit of the input changes half of the output bits on average.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// FNV-1a, 64 bits.
constexpr std::uint64_t hash(std::string_view name) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (const char c : name) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return sum;
}

/// Returns the integer itself.
constexpr std::uint64_t hash(std::integral auto number) { return static_cast<std::uint64_t>(number); }

/// Returns the key of a stream, made from a seed and, in order, the parts that distinguish the stream from others of that seed. A part is a
/// name (hashed) or an integer. key = mix(seed), then key = mix(key xor part) for each part. Examples: make_key(seed, "0.weight"),
/// make_key(seed, "dropout", step, layer).
template <class... Parts>
constexpr Key make_key(std::uint64_t seed, const Parts&... parts) {
  Key key{mix(seed)};
  (..., (key.value = mix(key.value ^ hash(parts))));
  return key;
}

/// Returns the 128 bits at position `low` + 2^64 `high` of the stream.
constexpr Block bits(Key key, std::uint64_t low, std::uint64_t high = 0) {
  const auto word = [](std::uint64_t value, int which) { return static_cast<std::uint32_t>(value >> (32 * which)); };
  return philox({word(low, 0), word(low, 1), word(high, 0), word(high, 1)}, {word(key.value, 0), word(key.value, 1)});
}

/// The count of numbers in one block: four floats of 24 bits or two doubles of 53 bits.
template <std::floating_point T>
inline constexpr Index per_block = std::same_as<T, float> ? 4 : 2;

/// Returns number `which` of a block, in [0, 1): an integer multiple of 2^-24 (float) or 2^-53 (double).
template <std::floating_point T>
constexpr T uniform_in(const Block& block, Index which) {
  if constexpr (std::same_as<T, float>) {
    return static_cast<float>(block[as_size(which)] >> 8) * 0x1p-24f;
  } else {
    const auto low = as_size(2 * which);
    return static_cast<T>((std::uint64_t{block[low]} | std::uint64_t{block[low + 1]} << 32) >> 11) * T{0x1p-53};
  }
}

/// Returns a uniform number in [0, 1). Element i is number i % per_block of block i / per_block. `element` must be 0 or more.
template <std::floating_point T = float>
constexpr T uniform(Key key, Index element) {
  return uniform_in<T>(bits(key, static_cast<std::uint64_t>(element / per_block<T>)), element % per_block<T>);
}

/// Fills `values` with uniform() of the elements first, first + 1, .... Computes each block once.
template <std::floating_point T>
void fill_uniform(Key key, Index first, std::span<T> values) {
  for (std::size_t done = 0; done < values.size();) {
    const Index element = first + as_index(done);
    const Block block = bits(key, static_cast<std::uint64_t>(element / per_block<T>));
    for (Index which = element % per_block<T>; which < per_block<T> && done < values.size(); ++which)
      values[done++] = uniform_in<T>(block, which);
  }
}

/// Returns a uniform number in [-bound, bound).
template <std::floating_point T>
constexpr T uniform_between(Key key, double bound, Index element) {
  return static_cast<T>(bound) * (2 * uniform<T>(key, element) - 1);
}

/// An order of columns. In memory there are `groups` groups, one after another: `leading` columns, `width` columns of a second kind, and
/// `width` of a third. In a stream, the columns of the first kind of all groups come first, then those of the second, then those of the
/// third. If `groups` is 0, the order is that of memory.
struct GroupedColumns {
  Index groups = 0, leading = 0, width = 0;

  /// Returns the number in the stream of a column in memory.
  [[nodiscard]] constexpr Index operator()(Index column) const {
    if (groups == 0) return column;
    const Index of_group = leading + 2 * width, group = column / of_group, in_group = column % of_group;
    if (in_group < leading) return group * leading + in_group;
    const Index kind = (in_group - leading) / width;  // 0: the second, 1: the third
    return groups * (leading + kind * width) + group * width + (in_group - leading) % width;
  }
  /// Returns the column in memory of a number in the stream.
  [[nodiscard]] constexpr Index in_memory(Index number) const {
    if (groups == 0) return number;
    const Index of_group = leading + 2 * width, behind = number - groups * leading;
    if (behind < 0) return number / leading * of_group + number % leading;
    const Index kind = behind / (groups * width), of_kind = behind % (groups * width);
    return of_kind / width * of_group + leading + kind * width + of_kind % width;
  }
  friend constexpr bool operator==(const GroupedColumns&, const GroupedColumns&) = default;
};

/// Maps the index of a value in memory to its element number in a stream. The values lie on a grid, row by row with `cols` values a row (0:
/// one row). Index 0 is position `first` of the grid. The grid's first row begins at number `begin`; its first column is column `left` of
/// the stream's; `row_step` and `col_step` are the distances between rows and between columns.
struct Elements {
  Index first = 0, cols = 0;
  Index begin = 0, row_step = 0, col_step = 1;
  Index left = 0;
  GroupedColumns order{};

  [[nodiscard]] constexpr Index operator[](Index index) const {
    const Index at = first + index;
    if (cols == 0) return begin + order(left + at);
    return begin + at / cols * row_step + order(left + at % cols) * col_step;
  }
};

/// Returns a normal number with mean 0 and standard deviation 1, by the method of Box and Muller: elements 2i and 2i + 1 come from block i.
/// Each `attempt` gives another number. Results may differ in their last bits between C libraries.
template <std::floating_point T = float>
T normal(Key key, Index element, std::uint64_t attempt = 0) {
  const Block block = bits(key, static_cast<std::uint64_t>(element / 2), attempt);
  const double radius = std::sqrt(-2 * std::log1p(-uniform_in<double>(block, 0)));  // log(1 - u); 1 - u is never 0
  const double angle = 2 * std::numbers::pi * uniform_in<double>(block, 1);
  return static_cast<T>(radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

/// Fills `values` with normal() of the elements first, first + 1, ....
template <std::floating_point T>
void fill_normal(Key key, Index first, std::span<T> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = normal<T>(key, first + as_index(i));
}

#ifdef PDP_SEPARATE_CORE
extern template void fill_uniform(Key, Index, std::span<float>);
extern template void fill_uniform(Key, Index, std::span<double>);
extern template void fill_normal(Key, Index, std::span<float>);
extern template void fill_normal(Key, Index, std::span<double>);
#endif

/// Draws numbers of a key's stream one after another, for uses without element numbers, such as a shuffle.
class Stream {
 public:
  explicit Stream(Key key) : key_{key} {}

  /// Returns the next 64 random bits.
  std::uint64_t next();

  /// Returns each number of [0, bound) with the same probability. `bound` must be 1 or more.
  std::uint64_t below(std::uint64_t bound);

 private:
  Key key_;
  std::uint64_t drawn_ = 0;
  Block block_{};
};

}  // namespace pdp::random

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/random.hpp>
#endif
