#pragma once

#include <pdp/core/windows.hpp>

namespace pdp {

/// How pooling sees a matrix. A row has `channels` channels, one after another, each an image. Each window of a channel gives one value.
struct Pooling {
  Index channels = 1;
  Windows vertical{}, horizontal{};
  bool counts_padding = true;  // a mean is over all positions of a window, also over those outside the image, which count as 0

  /// Return the number of values of a channel before and behind.
  [[nodiscard]] constexpr Index positions() const { return vertical.extent * horizontal.extent; }
  [[nodiscard]] constexpr Index windows() const { return vertical.count() * horizontal.count(); }
};

/// How adaptive pooling sees a matrix, in the same way.
struct AdaptivePooling {
  Index channels = 1;
  AdaptiveWindows vertical{}, horizontal{};

  [[nodiscard]] constexpr Index positions() const { return vertical.extent * horizontal.extent; }
  [[nodiscard]] constexpr Index windows() const { return vertical.count * horizontal.count; }
};
static_assert(Pooling{.vertical = {.extent = 6, .size = 2, .stride = 2}, .horizontal = {.extent = 4, .size = 2, .stride = 2}}.windows() ==
              6);

}  // namespace pdp
