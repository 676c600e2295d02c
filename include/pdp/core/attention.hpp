#pragma once

#include <cmath>

#include <pdp/core/shape.hpp>

namespace pdp {

/// How attention sees its matrices. Each position of a sample has a vector of row() values in the input: for each head of keys, the queries
/// of the heads that share it, then the keys, then the values, each of `width` values. So some of the key heads with all that belongs to
/// them are a range of columns. Head h attends to the keys and values of key head h / of_key_head(). Each position of the output has heads
/// * width values.
struct Attention {
  Index positions = 0;  // of a sample
  Index heads = 1;
  Index key_heads = 1;  // divides heads
  Index width = 0;      // of a head
  bool causal = false;  // a position attends only to itself and the positions before it

  /// Returns the number of values of a position in the input, and in the output.
  [[nodiscard]] constexpr Index row() const { return (heads + 2 * key_heads) * width; }
  [[nodiscard]] constexpr Index out() const { return heads * width; }
  /// Returns the number of heads that share a head of keys.
  [[nodiscard]] constexpr Index of_key_head() const { return heads / key_heads; }
  /// Return the first column of a head's queries, of the keys and the values that it attends to, and of its output.
  [[nodiscard]] constexpr Index query(Index head) const { return (head + 2 * (head / of_key_head())) * width; }
  [[nodiscard]] constexpr Index key(Index key_head) const { return (key_head * (of_key_head() + 2) + of_key_head()) * width; }
  [[nodiscard]] constexpr Index value(Index key_head) const { return key(key_head) + width; }
  [[nodiscard]] constexpr Index output(Index head) const { return head * width; }
  /// Returns the first column of the queries or the keys with number `which`, of heads + key_heads.
  [[nodiscard]] constexpr Index query_or_key(Index which) const { return (which + which / (of_key_head() + 1)) * width; }
  /// Returns the number of positions that a position attends to.
  [[nodiscard]] constexpr Index keys(Index position) const { return causal ? position + 1 : positions; }
  /// Returns the factor of the products of queries and keys.
  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }
};
static_assert(Attention{.heads = 4, .key_heads = 2, .width = 8}.value(1) == 56);
static_assert(Attention{.heads = 4, .key_heads = 2, .width = 8}.query_or_key(5) == 48);

/// Numbers that attention saves for each position and head: the logarithm of the sum of exponentials, as the sum of two, since one of 16
/// bits is too coarse.
inline constexpr Index attention_sums = 2;

/// Rotary positions: values i and i + width / 2 of each query and key at position p turn by the angle p * base^(-2 i / width). Su et al.,
/// "RoFormer", arXiv:2104.09864, with the pairs of values as in Hugging Face's LLaMA.
struct Rotation {
  double base = 10000;
  bool backward = false;  // by the negative angle

  /// Returns the exponent of `base` in the angle of pair `i` of vectors of `width` values.
  [[nodiscard]] constexpr double exponent(Index i, Index width) const { return -2 * static_cast<double>(i) / static_cast<double>(width); }
  [[nodiscard]] constexpr double sign() const { return backward ? -1 : 1; }
};

}  // namespace pdp
