#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp {

/// Counts of elements, rows and samples.
using Index = std::int64_t;

/// The extents of one sample, outermost first, without the batch dimension. A Shape without extents is not known yet.
class Shape {
 public:
  static constexpr int max_rank = 4;

  constexpr Shape() = default;

  template <class... Extents>
  requires(sizeof...(Extents) >= 1 && sizeof...(Extents) <= max_rank) constexpr explicit Shape(Extents... extents)
      : rank_{sizeof...(Extents)}, extents_{static_cast<Index>(extents)...} {}

  [[nodiscard]] constexpr bool known() const { return rank_ > 0; }
  [[nodiscard]] constexpr int rank() const { return rank_; }
  [[nodiscard]] constexpr Index operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }

  /// Returns the number of values of one sample; 0 if the shape is not known.
  [[nodiscard]] constexpr Index elements() const {
    Index product = known() ? 1 : 0;
    for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
    return product;
  }

  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  int rank_ = 0;
  std::array<Index, max_rank> extents_{};
};

/// Returns text such as "[1, 28, 28]"; "[?]" if the shape is not known.
std::string text(const Shape& shape);

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/shape.hpp>
#endif
