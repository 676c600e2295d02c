#pragma once

/// Definitions for pdp/testing/layer_check.hpp; see pdp/core/separate_compilation.hpp.

#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/testing/layer_check.hpp>

namespace pdp::testing::detail {

PDP_INLINE std::string element_name(const nn::Parameter& parameter, Index element) {
  if (parameter.cols == 0) return text("element ", element, " of ", parameter.full_name());
  return text("element [", element / parameter.cols, ", ", element % parameter.cols, "] of ", parameter.full_name());
}
PDP_INLINE std::string of_layer(const char* name, const nn::Path& at, const std::string& fault) {
  if (fault.empty()) return {};
  const std::string number = at.str();
  return number.empty() ? text("the layer (", name, "): ", fault) : text("layer ", number, " (", name, "): ", fault);
}
PDP_INLINE std::string position_fault(const nn::Parameter& parameter, Index elements) {
  const Index end = parameter.offset + parameter.elements();
  if (end > elements)
    return text("parameters() describes ", parameter.full_name(), " as elements ", parameter.offset, " to ", end - 1,
                ", but parameter_elements() is ", elements, "; expected at least ", nn::padded_parameter(end));
  if (parameter.offset % nn::parameter_block == 0) return {};
  return text("parameters() describes ", parameter.full_name(), " from element ", parameter.offset, " on; expected a multiple of ",
              nn::parameter_block, ", as nn::padded_parameter gives");
}

}  // namespace pdp::testing::detail
