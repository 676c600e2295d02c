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

/// Copies values to `memory`, for which the first call allocates `most` elements. Returns the copy.
template <class T, class Other>
std::span<const T> converted(std::span<const Other> values, std::vector<T>& memory, std::size_t most) {
  memory.reserve(std::max(most, values.size()));
  memory.assign(values.begin(), values.end());
  return memory;
}

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
    return given.other().empty() ? given.same() : converted(given.other(), values_, as_size(most_));
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
