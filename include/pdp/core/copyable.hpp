#pragma once

#include <concepts>
#include <type_traits>

#include <pdp/core/requirements.hpp>

namespace pdp {

/// A type whose values can be copied, moved and assigned. Weaker than std::copyable, which also computes common reference types: every
/// layer, strategy and dataset would pay for these at compile time.
template <class T>
concept Copyable = std::is_object_v<T> && requires(T& to, T&& from, const T& original) {
  T(original);
  T(static_cast<T&&>(from));
  { to = original } -> std::same_as<T&>;
  { to = static_cast<T&&>(from) } -> std::same_as<T&>;
};

/// A type whose values can be moved and assigned. Weaker than std::movable, for the same reason.
template <class T>
concept Movable = std::is_object_v<T> && requires(T& to, T&& from) {
  T(static_cast<T&&>(from));
  { to = static_cast<T&&>(from) } -> std::same_as<T&>;
};

static_assert(Movable<int> && !Movable<int&> && Copyable<int> && !Copyable<int&> && !Copyable<const int>);

}  // namespace pdp
