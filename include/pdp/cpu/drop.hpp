#pragma once

#include <algorithm>

#include <pdp/core/matrix.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Sets each value to zero with probability `probability`, and divides the others by 1 - probability. The random numbers are those of the
/// pass, so a second call drops the same values. y may be x.
template <class T>
void drop(const Cpu& cpu, const Pass& pass, float probability, Matrix<const T> x, Matrix<T> y);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/drop.hpp>
#endif
