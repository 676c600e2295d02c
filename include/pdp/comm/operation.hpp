#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/finite.hpp>

namespace pdp::comm {

/// The kind of a call. The values are part of the wire format.
enum class Verb : std::uint8_t {
  send,
  barrier,
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  all_gather,
  gather,
  scatter,
  all_to_all,
  split
};

/// The number of verbs.
inline constexpr std::size_t verbs = as_size(Verb::split) + 1;

/// Returns the name of a verb, for messages.
constexpr const char* name(Verb verb) {
  switch (verb) {
    case Verb::send:
      return "send";
    case Verb::barrier:
      return "barrier";
    case Verb::broadcast:
      return "broadcast";
    case Verb::reduce:
      return "reduce";
    case Verb::all_reduce:
      return "all_reduce";
    case Verb::reduce_scatter:
      return "reduce_scatter";
    case Verb::all_gather:
      return "all_gather";
    case Verb::gather:
      return "gather";
    case Verb::scatter:
      return "scatter";
    case Verb::all_to_all:
      return "all_to_all";
    case Verb::split:
      return "split";
  }
  return "an unknown call";
}

/// How a reduction combines two values; `none` for calls that only move values. The values are part of the wire format.
enum class Reduction : std::uint8_t { none, sum, product, min, max, average, bit_and, bit_or };

/// Returns the name of a reduction, for messages.
constexpr const char* name(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "none";
    case Reduction::sum:
      return "sum";
    case Reduction::product:
      return "product";
    case Reduction::min:
      return "min";
    case Reduction::max:
      return "max";
    case Reduction::average:
      return "average";
    case Reduction::bit_and:
      return "bitwise and";
    case Reduction::bit_or:
      return "bitwise or";
  }
  return "an unknown reduction";
}

namespace detail {

/// Returns the result of Min or Max for two values if neither is greater: NaN if one is NaN, otherwise either of the equal values. If the
/// values are 0 and -0, returns -0 if `negative` is true, else 0.
template <class T>
constexpr T of_equals(T left, T right, bool negative) {
  const auto a = static_cast<float>(left), b = static_cast<float>(right);
  if (is_nan(a) || is_nan(b)) return not_a_number<T>();
  return (std::bit_cast<std::uint32_t>(a) >> 31 != 0) == negative ? left : right;
}

}  // namespace detail

/// The operations of a reduction are types: `world.all_reduce(gradients, Sum{})`. A std::byte counts as an unsigned number of eight bits.
/// Sums and products of integers wrap around on overflow. Sums and products of 16-bit floats are rounded after each rank.
struct Sum {
  static constexpr Reduction reduction = Reduction::sum;
  template <class T>
  static constexpr T combine(T left, T right) {
    if constexpr (std::integral<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(left) + static_cast<std::make_unsigned_t<T>>(right));
    else
      return static_cast<T>(left + right);
  }
};
/// The product, with overflow and rounding as in Sum.
struct Product {
  static constexpr Reduction reduction = Reduction::product;
  template <class T>
  static constexpr T combine(T left, T right) {
    if constexpr (std::integral<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(left) * static_cast<std::make_unsigned_t<T>>(right));
    else
      return static_cast<T>(left * right);
  }
};
/// The smaller value; NaN if one is NaN. -0 counts as smaller than 0, so the order of combining does not matter.
struct Min {
  static constexpr Reduction reduction = Reduction::min;
  template <class T>
  static constexpr T combine(T left, T right) {
    if constexpr (!std::integral<T>)
      if (!is_greater(right, left) && !is_greater(left, right)) return detail::of_equals(left, right, /*negative*/ true);
    return right < left ? right : left;
  }
};
/// The larger value; NaN if one is NaN. 0 counts as larger than -0.
struct Max {
  static constexpr Reduction reduction = Reduction::max;
  template <class T>
  static constexpr T combine(T left, T right) {
    if constexpr (!std::integral<T>)
      if (!is_greater(right, left) && !is_greater(left, right)) return detail::of_equals(left, right, /*negative*/ false);
    return left < right ? right : left;
  }
};
/// The sum, as Sum computes it. Once the sum is complete, it is divided by the number of ranks. Integers are rounded towards zero; 16-bit
/// floats are divided as floats. A call throws ConfigError if the element type cannot represent the number of ranks (see most_averaged).
struct Average : Sum {
  static constexpr Reduction reduction = Reduction::average;
};

/// Bitwise operations on integers and bytes.
struct BitAnd {
  static constexpr Reduction reduction = Reduction::bit_and;
  template <std::integral T>
  static constexpr T combine(T left, T right) {
    return static_cast<T>(left & right);
  }
};
struct BitOr {
  static constexpr Reduction reduction = Reduction::bit_or;
  template <std::integral T>
  static constexpr T combine(T left, T right) {
    return static_cast<T>(left | right);
  }
};

/// An operation of a reduction, such as Sum.
template <class O>
concept Operation = requires {
  { O::reduction } -> std::convertible_to<Reduction>;
};

namespace detail {

template <class T>
struct Arithmetic {
  using type = T;
};
template <>
struct Arithmetic<std::byte> {
  using type = unsigned char;
};

}  // namespace detail

/// The largest group for an Average of T: the element type represents every number of ranks up to it. In a larger group even a sum of ones
/// would be wrong. int8: 127, byte: 255, float16: 2048, bfloat16: 256, float32: 2^24, float64: 2^53; int32, int64: any.
template <Element T>
inline constexpr std::int64_t most_averaged = [] {
  using A = typename detail::Arithmetic<T>::type;
  if constexpr (std::integral<A>)
    return std::int64_t{std::numeric_limits<A>::max()};
  else if constexpr (sizeof(A) == 2)
    return std::int64_t{1} << (std::same_as<A, Float16> ? 11 : 8);
  else
    return std::int64_t{1} << std::numeric_limits<A>::digits;
}();

/// An operation that combines elements of type T.
template <class O, class T>
concept Combines = Operation<O> && Element<T> && requires(typename detail::Arithmetic<T>::type value) {
  { O::combine(value, value) } -> std::same_as<typename detail::Arithmetic<T>::type>;
};

/// The type-erased form of an operation, for schedules. Combines the elements at `from` into the elements at `into`: `bytes` bytes each,
/// aligned for the element type.
using Combine = void (*)(std::byte* into, const std::byte* from, std::size_t bytes);

/// Combines elements of type T by the operation O; see Combine.
template <Element T, Combines<T> O>
void combine(std::byte* into, const std::byte* from, std::size_t bytes) {
  using A = typename detail::Arithmetic<T>::type;
  A* __restrict sums = reinterpret_cast<A*>(into);
  const A* __restrict values = reinterpret_cast<const A*>(from);
  const std::size_t count = bytes / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) sums[i] = O::combine(sums[i], values[i]);
}

/// Divides the sums of an Average by the number of ranks. `bytes`: the size of all sums.
template <Element T>
void divide(std::byte* values, std::size_t bytes, int ranks) {
  using A = typename detail::Arithmetic<T>::type;
  using Wide = std::conditional_t<std::integral<A>, std::common_type_t<A, int>, Accumulated<A>>;
  A* quotients = reinterpret_cast<A*>(values);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) quotients[i] = static_cast<A>(Wide{quotients[i]} / static_cast<Wide>(ranks));
}

static_assert(Combines<Sum, float> && Combines<Average, BFloat16> && Combines<BitAnd, std::byte> && !Combines<BitOr, double> &&
              !Operation<int>);

}  // namespace pdp::comm
