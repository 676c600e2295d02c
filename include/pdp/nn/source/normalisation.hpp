#pragma once

/// Definitions for pdp/nn/normalisation.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/normalisation.hpp>

namespace pdp::nn {

PDP_INLINE void detail::a_normalisation_does_not_fit_its_input(const char* layer, Index values, Index multiple) {
  if (multiple < 1) throw ShapeError{text("nn::", layer, " normalises ", multiple, " values together; expected 1 or more")};
  throw ShapeError{
      text("nn::", layer, " expects samples with a multiple of ", multiple, " values, but its input has ", values, "; make the two fit")};
}

}  // namespace pdp::nn
