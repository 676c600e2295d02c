#pragma once

/// Definitions for pdp/core/shape.hpp; see pdp/core/separate_compilation.hpp.

#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

PDP_INLINE std::string text(const Shape& shape) {
  if (shape.rank() == 0) return "[?]";
  std::string joined = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) joined += ", ";
    const Index extent = shape[axis];
    joined += extent == Shape::leading ? "..." : extent == Shape::any ? "?" : text(extent);
  }
  return joined + "]";
}

}  // namespace pdp
