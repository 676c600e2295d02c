#pragma once

/// Definitions for pdp/nn/image.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/image.hpp>

namespace pdp::nn {

PDP_INLINE void detail::an_option_of_a_layer_of_images_is_too_small(const char* layer, const char* option, Size2d given, Index least) {
  throw ConfigError{
      text("nn::", layer, " was given the ", option, " ", given.height, " x ", given.width, "; both numbers must be ", least, " or more")};
}
PDP_INLINE void detail::the_padding_of_a_pooling_layer_is_more_than_half_of_its_window(const char* layer, Size2d padding, Size2d window) {
  throw ConfigError{text("nn::", layer, " was given the padding ", padding.height, " x ", padding.width, " for windows of ", window.height,
                         " x ", window.width, " positions; give it at most half of that")};
}

}  // namespace pdp::nn
