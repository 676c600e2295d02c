#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <pdp/core/dtype.hpp>

namespace pdp::comm {

/// What a call does. The values are part of the wire format.
enum class Verb : std::uint8_t { send, barrier, broadcast, reduce, all_reduce, reduce_scatter, all_gather, gather, scatter };

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
  }
  return "an unknown call";
}

/// How a reduction combines two values; `none` where a call moves values only. The values are part of the wire format.
enum class Reduction : std::uint8_t { none, sum, product, min, max, average };

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
  }
  return "an unknown reduction";
}

/// The operations of a reduction, as types: `world.all_reduce(gradients, Sum{})`. A byte is an unsigned number of eight bits.
struct Sum {
  static constexpr Reduction reduction = Reduction::sum;
  template <class T>
  static constexpr T combine(T left, T right) {
    return static_cast<T>(left + right);
  }
};
struct Product {
  static constexpr Reduction reduction = Reduction::product;
  template <class T>
  static constexpr T combine(T left, T right) {
    return static_cast<T>(left * right);
  }
};
struct Min {
  static constexpr Reduction reduction = Reduction::min;
  template <class T>
  static constexpr T combine(T left, T right) {
    return std::min(left, right);
  }
};
struct Max {
  static constexpr Reduction reduction = Reduction::max;
  template <class T>
  static constexpr T combine(T left, T right) {
    return std::max(left, right);
  }
};
/// The sum, divided by the number of ranks once it is complete (integers: rounded towards zero).
struct Average : Sum {
  static constexpr Reduction reduction = Reduction::average;
};

template <class O>
concept Operation = requires {
  { O::reduction } -> std::convertible_to<Reduction>;
  { O::combine(1.0f, 2.0f) } -> std::same_as<float>;
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

/// Combines `bytes` of elements at `from` into those at `into`; both are aligned for their element. The erased form that a schedule
/// carries.
using Combine = void (*)(std::byte* into, const std::byte* from, std::size_t bytes);

template <Element T, Operation O>
void combine(std::byte* into, const std::byte* from, std::size_t bytes) {
  using A = typename detail::Arithmetic<T>::type;
  A* __restrict sums = reinterpret_cast<A*>(into);
  const A* __restrict values = reinterpret_cast<const A*>(from);
  const std::size_t count = bytes / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) sums[i] = O::combine(sums[i], values[i]);
}

/// What an Average still owes after its sum.
template <Element T>
void divide(std::byte* values, std::size_t bytes, int ranks) {
  using A = typename detail::Arithmetic<T>::type;
  A* quotients = reinterpret_cast<A*>(values);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) quotients[i] = static_cast<A>(quotients[i] / static_cast<A>(ranks));
}

static_assert(Operation<Sum> && Operation<Product> && Operation<Min> && Operation<Max> && Operation<Average> && !Operation<int>);

}  // namespace pdp::comm
