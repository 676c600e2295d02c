#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Computes out = in, rounded to another element type: from float to one of 16 bits, or back. Both must have the same number of elements.
template <class From, class To>
void convert(const Cpu&, Matrix<const From> in, Matrix<To> out);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/convert.hpp>
#endif
