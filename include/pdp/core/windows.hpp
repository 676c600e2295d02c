#pragma once

#include <compare>

#include <pdp/core/shape.hpp>

namespace pdp {

/// A part of an axis, from `first` to `end` - 1.
struct Range {
  Index first = 0;
  Index end = 0;

  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// The windows of a convolution or of pooling along one axis of an image. Window w has `size` positions, `dilation` apart, the first of
/// them at w * stride - padding. Positions before the axis and behind it hold no value of the image.
struct Windows {
  Index extent = 1;  // positions of the axis
  Index size = 1;
  Index stride = 1;
  Index padding = 0;
  Index dilation = 1;

  /// Returns the positions from the first to the last of a window.
  [[nodiscard]] constexpr Index reach() const { return (size - 1) * dilation + 1; }
  /// Returns the number of windows that lie on the axis with its padding; 0 if the axis is too short for one.
  [[nodiscard]] constexpr Index count() const {
    const Index room = extent + 2 * padding - reach();
    return room < 0 ? 0 : room / stride + 1;
  }
  /// Returns position `i` of a window. It may be outside the axis.
  [[nodiscard]] constexpr Index position(Index window, Index i) const { return window * stride - padding + i * dilation; }
  [[nodiscard]] constexpr bool is_inside(Index position) const { return position >= 0 && position < extent; }
  /// Returns the windows whose position `i` is on the axis.
  [[nodiscard]] constexpr Range inside(Index i) const {
    const Index shift = i * dilation - padding, all = count();
    const Index first = shift < 0 ? (stride - 1 - shift) / stride : 0;
    const Index end = shift < extent ? (extent - 1 - shift) / stride + 1 : 0;
    return first < all && first < end ? Range{first, end < all ? end : all} : Range{};
  }
  /// Returns the window whose position `i` is `at`; -1 if there is none.
  [[nodiscard]] constexpr Index window(Index at, Index i) const {
    const Index from = at + padding - i * dilation;
    return from >= 0 && from % stride == 0 && from / stride < count() ? from / stride : -1;
  }

  friend constexpr auto operator<=>(const Windows&, const Windows&) = default;
};
static_assert(Windows{.extent = 28, .size = 5, .padding = 2}.count() == 28);
static_assert(Windows{.extent = 7, .size = 3, .stride = 2, .padding = 1, .dilation = 2}.count() == 3);
static_assert(Windows{.extent = 7, .size = 3, .stride = 2, .padding = 1, .dilation = 2}.inside(0) == Range{1, 3});

/// The windows of adaptive pooling along one axis: `count` of them, which together cover the axis. Their sizes differ by at most 1, and
/// neighbours may overlap.
struct AdaptiveWindows {
  Index extent = 1;
  Index count = 1;

  /// Returns the positions of a window.
  [[nodiscard]] constexpr Range operator[](Index window) const {
    return {window * extent / count, ((window + 1) * extent + count - 1) / count};
  }
  /// Returns the windows with a position.
  [[nodiscard]] constexpr Range with(Index position) const {
    return {position * count / extent, ((position + 1) * count + extent - 1) / extent};
  }
};
static_assert(AdaptiveWindows{.extent = 5, .count = 3}[1] == Range{1, 4});
static_assert(AdaptiveWindows{.extent = 5, .count = 3}.with(1) == Range{0, 2});

}  // namespace pdp
