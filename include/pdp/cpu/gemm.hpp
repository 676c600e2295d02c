#pragma once

#include <concepts>
#include <string>

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Returns whether oneDNN multiplies matrices of floats. Otherwise Eigen does.
bool has_onednn(const Cpu& cpu);

/// Returns the library that multiplies matrices of floats, such as "oneDNN 2.6.3" or "Eigen 3.4.0".
std::string products_name(const Cpu& cpu);

/// Computes c (+)= a b. (+)= adds to c if `accumulate` is true, and overwrites it otherwise.
template <std::floating_point T>
void gemm(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate);

/// Computes c (+)= a b^T.
template <std::floating_point T>
void gemm_nt(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate);

/// Computes c (+)= a^T b.
template <std::floating_point T>
void gemm_tn(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/gemm.hpp>
#endif
