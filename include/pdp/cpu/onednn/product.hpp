#pragma once

#include <string>

#include <pdp/core/matrix.hpp>

namespace pdp::cpu::onednn {

// Defined in a program that links CMake's target pdp::onednn, or includes pdp/cpu/onednn.hpp. In other programs they are null, and Eigen
// multiplies.

/// A matrix as it lies in memory, row by row, or its transpose.
struct Operand {
  const float* data;
  Index stride;  // elements from one row in memory to the next
  bool is_transposed;
};

/// c (+)= left right by oneDNN, on so many threads; `depth` numbers are added up for each element. The calling thread keeps the kernels
/// that oneDNN makes for the size. oneDNN takes memory from malloc, and gives it back. Throws Error where oneDNN refuses.
[[gnu::weak]] void product(const Operand& left, const Operand& right, Matrix<float> c, Index depth, bool accumulate, int threads);

/// Such as "oneDNN 2.6.3".
[[gnu::weak]] std::string name();

/// Whether the program has these functions. By a pointer, as compilers warn of a comparison that a definition in the same source decides.
inline bool is_linked() {
  const auto found = &product;
  return found != nullptr;
}

}  // namespace pdp::cpu::onednn
