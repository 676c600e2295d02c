#pragma once

/// Definitions for pdp/loss/cross_entropy.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/loss/cross_entropy.hpp>

namespace pdp::loss {

PDP_INLINE void CrossEntropy::check(std::span<const Target> classes, Index outputs) const {
  for (std::size_t row = 0; row < classes.size(); ++row) static_cast<void>(label_of(classes, as_index(row), outputs));
}

}  // namespace pdp::loss
