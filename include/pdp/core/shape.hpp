#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp {

/// Counts of elements, rows and samples.
using Index = std::int64_t;

/// The extents of one sample, outermost first, without the batch dimension. A Shape without extents is not known yet. A Shape with an
/// extent of `any` or `leading` is known in part.
class Shape {
 public:
  static constexpr int max_rank = 4;
  static constexpr Index any = std::numeric_limits<Index>::min();  // an extent that is not known
  static constexpr Index leading = any + 1;                        // the first extent only: any number of extents, which are not known

  constexpr Shape() = default;

  template <class... Extents>
  requires(sizeof...(Extents) >= 1 && sizeof...(Extents) <= max_rank) constexpr explicit Shape(Extents... extents)
      : rank_{sizeof...(Extents)}, extents_{static_cast<Index>(extents)...} {}

  /// Returns whether all extents are known.
  [[nodiscard]] constexpr bool known() const {
    for (int axis = 0; axis < rank_; ++axis)
      if ((*this)[axis] <= leading) return false;
    return rank_ > 0;
  }
  /// Returns whether the number of extents is known.
  [[nodiscard]] constexpr bool rank_is_known() const { return rank_ > 0 && extents_[0] != leading; }
  [[nodiscard]] constexpr int rank() const { return rank_; }
  [[nodiscard]] constexpr Index operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  /// Returns the last extent; `any` if it is not known.
  [[nodiscard]] constexpr Index last() const { return rank_ > 0 ? (*this)[rank_ - 1] : any; }
  /// Returns the same shape with another last extent.
  [[nodiscard]] constexpr Shape with_last(Index extent) const {
    if (rank_ == 0) return Shape{leading, extent};
    Shape other = *this;
    other.extents_[static_cast<std::size_t>(rank_ - 1)] = extent;
    return other;
  }

  /// Returns the same shape with one more extent, the last one. The rank must be below max_rank.
  [[nodiscard]] constexpr Shape with_appended(Index extent) const {
    if (rank_ == 0) return Shape{leading, extent};
    Shape other = *this;
    other.extents_[static_cast<std::size_t>(other.rank_++)] = extent;
    return other;
  }

  /// Returns the number of values of one sample; 0 if the shape is not known.
  [[nodiscard]] constexpr Index elements() const {
    Index product = known() ? 1 : 0;
    if (product == 0) return 0;
    for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
    return product;
  }

  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  int rank_ = 0;
  std::array<Index, max_rank> extents_{};
};

/// Returns text such as "[1, 28, 28]"; "[16, ?, ?]" or "[..., 64]" if a part is not known, and "[?]" if nothing is.
std::string text(const Shape& shape);

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/shape.hpp>
#endif
