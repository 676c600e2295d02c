#pragma once

#include <string>

#include <pdp/core/matrix.hpp>

namespace pdp::cpu::onednn {

// These functions are defined in a program that links CMake's target pdp::onednn or includes pdp/cpu/onednn.hpp. In other programs they are
// null, and Eigen multiplies.

/// A matrix in memory, row by row, or its transpose.
struct Operand {
  const float* data;
  Index stride;  // elements from the start of a row in memory to that of the next
  bool is_transposed;
};

/// Computes c (+)= left right by oneDNN on `threads` threads; each element of c is a sum of `depth` products. The calling thread keeps the
/// kernels that oneDNN makes for the size. oneDNN allocates memory with malloc and frees it. Throws Error if oneDNN fails.
[[gnu::weak]] void product(const Operand& left, const Operand& right, Matrix<float> c, Index depth, bool accumulate, int threads);

/// Computes the same on one thread, for a block c of a matrix. `c_stride`: elements from the start of a row of c to that of the next.
/// Returns whether oneDNN has succeeded.
[[gnu::weak]] bool block_product(const Operand& left, const Operand& right, float* c, Index c_stride, Index rows, Index cols, Index depth,
                                 bool accumulate);

/// Returns a name such as "oneDNN 2.6.3".
[[gnu::weak]] std::string name();

/// Returns whether the program has these functions. Uses a variable, since compilers warn of a direct comparison if the same source has the
/// definition.
inline bool is_linked() {
  const auto found = &product;
  return found != nullptr;
}

}  // namespace pdp::cpu::onednn
