#pragma once

/// Definitions for pdp/loss/cross_entropy.hpp; see pdp/core/separate_compilation.hpp.

#include <span>

#include <pdp/core/label.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/loss/cross_entropy.hpp>

namespace pdp::loss {

PDP_INLINE void CrossEntropy::check(std::span<const Target> classes, Index outputs) const { check_labels(classes, outputs, ignored()); }

}  // namespace pdp::loss
