#pragma once

/// Definitions for pdp/nn/parameter.hpp; see pdp/core/separate_compilation.hpp.

#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn {

PDP_INLINE void Path::layers_are_nested_too_deep() {
  throw ConfigError{text("layers are nested in more than ", max_depth, " containers; nest fewer")};
}
PDP_INLINE std::string Path::str() const {
  std::string joined;
  for (int i = 0; i < depth_; ++i) joined += text(i > 0 ? "." : "", at_[as_size(i)]);
  return joined;
}

PDP_INLINE std::vector<Index> Parameter::file_shape() const {
  const Index all_rows = rows * row_part.count, all_cols = cols * col_part.count;
  if (cols == 0) return {all_rows};
  return transposed ? std::vector<Index>{all_cols, all_rows} : std::vector<Index>{all_rows, all_cols};
}
PDP_INLINE std::string Parameter::full_name() const {
  const std::string at = layer.str();
  return at.empty() ? name : text(at, ".", name);
}

}  // namespace pdp::nn
