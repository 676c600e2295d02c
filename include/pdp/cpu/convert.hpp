#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// out = in, rounded to another element type. Of the same number of elements.
template <class From, class To>
void convert(const Cpu&, Matrix<const From> in, Matrix<To> out) {
  const From* const from = in.data;
  To* const to = out.data;
  for (Index i = 0; i < in.rows * in.cols; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
}

}  // namespace pdp::cpu
