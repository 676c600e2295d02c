#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/number_view.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::detail {

/// Memory in which arguments are converted to elements of type T. Floats and doubles convert to each other; any other type must be T.
template <class T>
class Converted {
 public:
  /// The type of an argument.
  using Given = std::span<const T>;

  explicit Converted(Index /*most*/) {}
  [[nodiscard]] std::span<const T> operator()(Given given) { return given; }
};

template <std::floating_point T>
class Converted<T> {
 public:
  using Given = NumberView<T>;

  /// `most`: the number of elements for which the first conversion allocates memory.
  explicit Converted(Index most) : most_{most} {}

  /// Returns the elements as they were given if they are of type T. Otherwise returns a copy, which is valid until the next call.
  [[nodiscard]] std::span<const T> operator()(Given given) {
    if (given.other().empty()) return given.same();
    values_.reserve(std::max(as_size(most_), given.size()));
    values_.assign(given.other().begin(), given.other().end());
    return values_;
  }

 private:
  Index most_;
  std::vector<T> values_;
};

/// Returns `count` values from number `first` on.
template <class T>
[[nodiscard]] constexpr std::span<const T> part_of(std::span<const T> values, std::size_t first, std::size_t count) {
  return values.subspan(first, count);
}
template <std::floating_point T>
[[nodiscard]] constexpr NumberView<T> part_of(const NumberView<T>& values, std::size_t first, std::size_t count) {
  return values.part(first, count);
}

}  // namespace pdp::detail
