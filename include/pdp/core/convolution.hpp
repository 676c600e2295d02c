#pragma once

#include <compare>

#include <pdp/core/windows.hpp>

namespace pdp {

/// How a convolution sees its matrices. A row of x has `channels` channels, one after another, each an image; a row of y has `filters`. The
/// channels form `groups` groups, and so do the filters. Value (f, window) of y is the sum over the channels of f's group, and over the
/// positions of the window, of weight times x. Row f of the weight has channels_of_group() * kernel() values: for each channel the kernel's
/// rows, one after another.
struct Convolution {
  Index channels = 1;
  Index filters = 1;
  Index groups = 1;  // divides both
  Windows vertical{}, horizontal{};

  [[nodiscard]] constexpr Index channels_of_group() const { return channels / groups; }
  [[nodiscard]] constexpr Index filters_of_group() const { return filters / groups; }
  /// Returns the number of values of a kernel.
  [[nodiscard]] constexpr Index kernel() const { return vertical.size * horizontal.size; }
  /// Returns the number of products in a value of y.
  [[nodiscard]] constexpr Index depth() const { return channels_of_group() * kernel(); }
  /// Return the number of values of a channel of x, and of y.
  [[nodiscard]] constexpr Index positions() const { return vertical.extent * horizontal.extent; }
  [[nodiscard]] constexpr Index windows() const { return vertical.count() * horizontal.count(); }

  friend constexpr auto operator<=>(const Convolution&, const Convolution&) = default;
};
static_assert(Convolution{.channels = 4, .groups = 2, .vertical = {.size = 3}, .horizontal = {.size = 2}}.depth() == 12);

}  // namespace pdp
