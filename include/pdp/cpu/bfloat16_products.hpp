#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

/// Products of matrices of bfloat16; the comments of the templates of the same names say what each computes. Sums are floats. oneDNN
/// multiplies if onednn::prefers_bfloat16(). Otherwise the operands are widened, some rows at a time.
namespace pdp::cpu {

void gemm(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<BFloat16> c, bool accumulate);
void gemm_nt(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<BFloat16> c, bool accumulate);
void gemm_tn(const Cpu& cpu, Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<float> c, bool accumulate);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/bfloat16_products.hpp>
#endif
