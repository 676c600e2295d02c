#pragma once

#include <pdp/core/affine.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

/// Products of matrices of bfloat16, and sums of their rows; the comments of the templates of the same names say what each computes. Sums
/// are floats. oneDNN multiplies if onednn::prefers_bfloat16(), or by Products::sixteen_bits. Otherwise blocks of the operands are widened.
namespace pdp::cpu {

void gemm(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<BFloat16> c, bool accumulate);
void gemm_nt(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<BFloat16> c, bool accumulate);
void gemm_tn(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<float> c, bool accumulate);

void add_row(const Cpu& cpu, const BFloat16* row, Matrix<BFloat16> rows);
void sum_rows(const Cpu& cpu, Matrix<const BFloat16> rows, float* sums, bool accumulate);

/// Adds the bias and computes the activation before it rounds, unless oneDNN multiplies.
void affine(const Cpu& cpu, Matrix<const BFloat16> x, Matrix<const BFloat16> weight, const BFloat16* bias, Matrix<BFloat16> y,
            Activation activation);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/bfloat16_products.hpp>
#endif
