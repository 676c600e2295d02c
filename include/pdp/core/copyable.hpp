#pragma once

#include <pdp/core/requirements.hpp>

namespace pdp {

/// A type whose values can be copied, moved and assigned. For a class it is the same as std::copyable, which also computes common reference
/// types. Every layer, strategy and dataset would pay for these at compile time.
template <class T>
concept Copyable = requires(T& to, T&& from, const T& original) {
  T(original);
  T(static_cast<T&&>(from));
  to = original;
  to = static_cast<T&&>(from);
};

static_assert(Copyable<int>);

}  // namespace pdp
