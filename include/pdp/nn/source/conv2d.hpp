#pragma once

/// Definitions for pdp/nn/conv2d.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/conv2d.hpp>

namespace pdp::nn {

PDP_INLINE void detail::a_convolution_needs_channels_that_its_groups_divide(Index in, Index out, Index groups) {
  throw ConfigError{text("nn::Conv2d was given ", in, " input channels, ", out, " output channels and ", groups,
                         " groups; all must be 1 or more, and both numbers of channels a multiple of the groups")};
}

}  // namespace pdp::nn
