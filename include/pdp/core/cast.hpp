#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <pdp/core/shape.hpp>

/// Conversions between the types of sizes and indices, and of numbers to double. The names are short to keep an expression readable:
/// `values[as_size(i)]`. The value must fit the result type; this is not checked.
namespace pdp {

/// An integer or enumeration type.
template <class N>
concept Whole = std::integral<N> || std::is_enum_v<N>;

template <Whole N>
constexpr std::size_t as_size(N number) noexcept {
  return static_cast<std::size_t>(number);
}

template <Whole N>
constexpr int as_int(N number) noexcept {
  return static_cast<int>(number);
}

template <Whole N>
constexpr Index as_index(N number) noexcept {
  return static_cast<Index>(number);
}

template <class N>
constexpr double as_double(const N& number) noexcept {
  return static_cast<double>(number);
}

}  // namespace pdp
