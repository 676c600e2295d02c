#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <pdp/core/requirements.hpp>

namespace pdp {

/// A span of floats or of doubles, as an argument of a function that computes in T. Converts from everything that converts to one of these
/// spans; `{}` is an empty one. Borrows the values.
template <std::floating_point T>
class NumberView {
 public:
  /// The type of the values if it is not T.
  using Other = std::conditional_t<std::same_as<T, float>, double, float>;

  constexpr NumberView() = default;
  constexpr NumberView(const T* values, std::size_t count) : same_{values, count} {}
  constexpr NumberView(const Other* values, std::size_t count) : other_{values, count} {}
  template <class Values>
  requires std::convertible_to<const Values&, std::span<const T>>
  constexpr NumberView(const Values& values) : same_{static_cast<std::span<const T>>(values)} {}
  template <class Values>
  requires std::convertible_to<const Values&, std::span<const Other>>
  constexpr NumberView(const Values& values) : other_{static_cast<std::span<const Other>>(values)} {}

  [[nodiscard]] constexpr std::size_t size() const { return same_.size() + other_.size(); }
  /// The values if they are of type T, and if they are of the other type. One of the two is empty.
  [[nodiscard]] constexpr std::span<const T> same() const { return same_; }
  [[nodiscard]] constexpr std::span<const Other> other() const { return other_; }
  /// Returns `count` values from number `first` on.
  [[nodiscard]] constexpr NumberView part(std::size_t first, std::size_t count) const {
    if (other_.empty()) return same_.subspan(first, count);
    return other_.subspan(first, count);
  }

 private:
  std::span<const T> same_;
  std::span<const Other> other_;
};

static_assert(std::convertible_to<std::span<float>, NumberView<double>> && std::convertible_to<std::span<double>, NumberView<double>>);

}  // namespace pdp
