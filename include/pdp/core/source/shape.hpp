#pragma once

/// Definitions for pdp/core/shape.hpp; see pdp/core/separate_compilation.hpp.

#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

PDP_INLINE std::string text(const Shape& shape) {
  if (!shape.known()) return "[?]";
  std::string joined = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) joined += text(axis > 0 ? ", " : "", shape[axis]);
  return joined + "]";
}

}  // namespace pdp
