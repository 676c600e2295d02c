#pragma once

/// Definitions for pdp/loss/cross_entropy.hpp; see pdp/core/separate_compilation.hpp.

#include <span>

#include <pdp/core/error.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/loss/cross_entropy.hpp>

namespace pdp::loss {

PDP_INLINE void CrossEntropy::check(std::span<const Target> classes, Index outputs) const { check_labels(classes, outputs, ignored()); }

PDP_INLINE double CrossEntropy::smoothing() const {
  if (!(label_smoothing >= 0 && label_smoothing < 1))
    throw ConfigError{text("the label_smoothing of CrossEntropy is ", label_smoothing, "; expected a number from 0 to below 1")};
  return label_smoothing;
}

}  // namespace pdp::loss
