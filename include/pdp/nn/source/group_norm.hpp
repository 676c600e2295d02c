#pragma once

/// Definitions for pdp/nn/group_norm.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/group_norm.hpp>

namespace pdp::nn {

PDP_INLINE void detail::the_groups_of_a_group_norm_must_divide_its_channels(Index groups, Index channels) {
  throw ConfigError{text("nn::GroupNorm was given ", groups, " groups of ", channels,
                         " channels; both must be 1 or more, and the channels a multiple of the groups")};
}

}  // namespace pdp::nn
