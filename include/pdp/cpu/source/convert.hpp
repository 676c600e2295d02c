#pragma once

/// Definitions for pdp/cpu/convert.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/matrix.hpp>
#include <pdp/cpu/convert.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

template <class From, class To>
void convert(const Cpu&, Matrix<const From> in, Matrix<To> out) {
  const From* const from = in.data;
  To* const to = out.data;
  for (Index i = 0; i < in.rows * in.cols; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
}

}  // namespace pdp::cpu
