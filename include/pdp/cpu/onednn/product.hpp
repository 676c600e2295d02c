#pragma once

#include <string>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>

namespace pdp::cpu::onednn {

// These functions are defined in a program that links CMake's target pdp::onednn or includes pdp/cpu/onednn.hpp. In other programs they are
// null, and Eigen multiplies.

/// A matrix in memory, row by row, or its transpose.
template <class T>
struct OperandOf {
  const T* data;
  Index stride;  // elements from the start of a row in memory to that of the next
  bool is_transposed;
};
using Operand = OperandOf<float>;

/// Computes c (+)= left right by oneDNN on `threads` threads; each element of c is a sum of `depth` products. The calling thread keeps the
/// kernels that oneDNN makes for the size. oneDNN allocates memory with malloc and frees it. Throws Error if oneDNN fails.
[[gnu::weak]] void product(const Operand& left, const Operand& right, Matrix<float> c, Index depth, bool accumulate, int threads);

/// Computes the same on one thread, for a block c of a matrix. `c_stride`: elements from the start of a row of c to that of the next.
/// Returns whether oneDNN has succeeded.
[[gnu::weak]] bool block_product(const Operand& left, const Operand& right, float* c, Index c_stride, Index rows, Index cols, Index depth,
                                 bool accumulate);

/// Returns whether this processor multiplies 16-bit numbers at least as fast as floats: with AMX, or with AVX512_BF16 if it is not Intel's.
/// Intel's Emerald Rapids without AMX takes twice as long as for floats.
[[gnu::weak]] bool prefers_bfloat16();

/// Compute c (+)= left right for 16-bit numbers, as product() does for floats. Sums are floats, which are rounded once if c has 16 bits.
/// Return false, and compute nothing, if oneDNN has no fast kernel for the sizes. No size may be 0.
[[gnu::weak]] bool product_of_bfloat16(const OperandOf<BFloat16>& left, const OperandOf<BFloat16>& right, Matrix<BFloat16> c, Index depth,
                                       bool accumulate, int threads);
[[gnu::weak]] bool product_of_bfloat16(const OperandOf<BFloat16>& left, const OperandOf<BFloat16>& right, Matrix<float> c, Index depth,
                                       bool accumulate, int threads);

/// Returns a name such as "oneDNN 2.6.3".
[[gnu::weak]] std::string name();

/// Returns whether the program has these functions. Uses a variable, since compilers warn of a direct comparison if the same source has the
/// definition.
inline bool is_linked() {
  const auto found = &product;
  return found != nullptr;
}

}  // namespace pdp::cpu::onednn
