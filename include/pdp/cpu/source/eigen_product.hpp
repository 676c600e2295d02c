#pragma once

/// Products of matrices and sums by Eigen, for the definitions of pdp/cpu/gemm.hpp and pdp/cpu/convolve.hpp.

#if !__has_include(<Eigen/Core>)
#error "pdp needs Eigen 3.4 or newer (Debian: libeigen3-dev): add -I/usr/include/eigen3, or the CMake target pdp::pdp"
#include <see the error above>
#endif
#include <Eigen/Core>

#include <algorithm>

#include <pdp/core/cast.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::cpu::detail {

/// The sizes of a product of a rows x depth and a depth x cols matrix.
struct ProductSize {
  Index rows, cols, depth;
};

/// Block sizes of a product. The packed copies of blocks fit on the stack, and Eigen keeps them there, so a step allocates nothing.
template <class T>
struct Blocking : Eigen::internal::level3_blocking<T, T> {
  explicit Blocking(const ProductSize& size) {
    constexpr Index most_bytes = EIGEN_STACK_ALLOCATION_LIMIT, width = 128, deep = most_bytes / width / as_index(sizeof(T));
    this->m_mc = std::min(size.cols, width);  // Eigen computes the transpose of a row-major product
    this->m_nc = std::min(size.rows, width);
    this->m_kc = std::min(size.depth, deep);
  }
};

/// Computes c += left right by the routine that Eigen's own BLAS uses. Eigen's expressions would take twice as long to compile, and choose
/// by size among kernels that a layer does not need. Left and Right are RowMajor for an operand as it is in memory, ColMajor for its
/// transpose. A stride is the number of elements from the start of a row in memory to that of the next. No size may be 0.
template <int Left, int Right, class T>
void add_product(const T* left, Index left_stride, const T* right, Index right_stride, T* c, Index c_stride, const ProductSize& size) {
  Blocking<T> blocking{size};
  Eigen::internal::general_matrix_matrix_product<Index, T, Left, false, T, Right, false, Eigen::RowMajor, 1>::run(
      size.rows, size.cols, size.depth, left, left_stride, right, right_stride, c, 1, c_stride, T{1}, blocking, nullptr);
}

/// Returns the sum of `count` values.
template <class T>
T sum_of(const T* values, Index count) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>{values, count}.sum();
}

}  // namespace pdp::cpu::detail
