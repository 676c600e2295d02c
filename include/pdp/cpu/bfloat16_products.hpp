#pragma once

#include <concepts>

#include <pdp/core/affine.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

/// Products of matrices of bfloat16, and sums of their rows; the comments of the templates of the same names say what each computes. Sums
/// are floats. oneDNN multiplies if onednn::prefers_bfloat16(), or by Products::sixteen_bits. Otherwise blocks of the operands are widened.
namespace pdp::cpu {

template <std::same_as<BFloat16> T>
void gemm(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate);
template <std::same_as<BFloat16> T>
void gemm_nt(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate);
template <std::same_as<BFloat16> T>
void gemm_tn(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<float> c, bool accumulate);

template <std::same_as<BFloat16> T>
void add_row(const Cpu& cpu, const T* row, Matrix<T> rows);
template <std::same_as<BFloat16> T>
void sum_rows(const Cpu& cpu, Matrix<const T> rows, float* sums, bool accumulate);

/// Adds the bias and computes the activation before it rounds, unless oneDNN multiplies.
template <std::same_as<BFloat16> T>
void affine(const Cpu& cpu, Matrix<const T> x, Matrix<const T> weight, const T* bias, Matrix<T> y, Activation activation);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/bfloat16_products.hpp>
#endif
