#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/windows.hpp>
#include <pdp/nn/misfit.hpp>

/// The parts that layers of images have in common. The shape of an image is [channels, height, width].
namespace pdp::nn {

/// A number for each of the two axes of an image. A single number is for both.
struct Size2d {
  Index height = 0;
  Index width = 0;

  constexpr Size2d(Index both) : height{both}, width{both} {}  // implicit, so that a layer may be given one number
  constexpr Size2d(Index of_height, Index of_width) : height{of_height}, width{of_width} {}
  friend constexpr bool operator==(const Size2d&, const Size2d&) = default;
};

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void an_option_of_a_layer_of_images_is_too_small(const char* layer, const char* option, Size2d given, Index least);
[[noreturn]] void the_padding_of_a_pooling_layer_is_more_than_half_of_its_window(const char* layer, Size2d padding, Size2d window);

constexpr void check_least(const char* layer, const char* option, Size2d given, Index least) {
  if (given.height < least || given.width < least) an_option_of_a_layer_of_images_is_too_small(layer, option, given, least);
}

/// The windows of a layer on both axes.
struct Windows2d {
  Size2d size{1}, stride{1}, padding{0}, dilation{1};

  /// Throws ConfigError if a number is too small.
  constexpr void check(const char* layer) const {
    check_least(layer, "kernel", size, 1);
    check_least(layer, "stride", stride, 1);
    check_least(layer, "padding", padding, 0);
    check_least(layer, "dilation", dilation, 1);
  }
  /// Return the windows on an axis of `extent` positions.
  [[nodiscard]] constexpr Windows vertical(Index extent) const {
    return {extent, size.height, stride.height, padding.height, dilation.height};
  }
  [[nodiscard]] constexpr Windows horizontal(Index extent) const {
    return {extent, size.width, stride.width, padding.width, dilation.width};
  }
  /// Returns the shape of `channels` channels of windows, for images that may be known in part.
  [[nodiscard]] constexpr Shape output(Index channels, const Shape& input) const {
    const bool is_image = input.rank_is_known();
    const Index height = is_image ? input[1] : Shape::any, width = is_image ? input[2] : Shape::any;
    return Shape{channels, height == Shape::any ? height : vertical(height).count(),
                 width == Shape::any ? width : horizontal(width).count()};
  }
  /// Returns why a layer does not take images of a shape: they are smaller than a window.
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    const auto too_small = [](const Windows& of, const char* what) {
      return of.extent != Shape::any && of.count() == 0 ? Misfit{what, of.reach() - 2 * of.padding, of.extent, true} : Misfit{};
    };
    if (!input.rank_is_known()) return {};
    if (const Misfit found = too_small(vertical(input[1]), "rows (the second dimension)")) return found;
    return too_small(horizontal(input[2]), "columns (the third dimension)");
  }
};

/// Returns why a layer of images does not take samples of a shape. `channels`: that it takes; `any` for all numbers.
constexpr Misfit misfit_of_image(Index channels, const Shape& input) {
  if (!input.rank_is_known()) return {};
  if (input.rank() != 3) return {"dimensions (channels, height, width)", 3, input.rank()};
  if (channels == Shape::any || input[0] == Shape::any || input[0] == channels) return {};
  return {"channels (the first dimension)", channels, input[0]};
}

}  // namespace detail

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/image.hpp>
#endif
