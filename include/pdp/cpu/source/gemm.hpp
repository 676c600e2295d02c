#pragma once

/// Definitions for pdp/cpu/gemm.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<Eigen/Core>)
#error "pdp needs Eigen 3.4 or newer (Debian: libeigen3-dev): add -I/usr/include/eigen3, or the CMake target pdp::pdp"
#include <see the error above>
#endif
#include <Eigen/Core>

#include <algorithm>
#include <concepts>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/onednn/product.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

PDP_INLINE bool has_onednn(const Cpu& cpu) { return cpu.products == Products::best && onednn::is_linked(); }

namespace detail {

/// Block sizes of a product. The packed copies of blocks fit on the stack, and Eigen keeps them there, so a step allocates nothing.
template <class T>
struct Blocking : Eigen::internal::level3_blocking<T, T> {
  Blocking(Index rows, Index cols, Index depth) {
    constexpr Index most_bytes = EIGEN_STACK_ALLOCATION_LIMIT, width = 128, deep = most_bytes / width / as_index(sizeof(T));
    this->m_mc = std::min(cols, width);  // Eigen computes the transpose of a row-major product
    this->m_nc = std::min(rows, width);
    this->m_kc = std::min(depth, deep);
  }
};

/// Computes c (+)= left right by the routine that Eigen's own BLAS uses. Eigen's expressions would take twice as long to compile, and
/// choose by size among kernels that a layer does not need. Left and Right are RowMajor for an operand as it is in memory, ColMajor for its
/// transpose.
template <int Left, int Right, class T>
void eigen_product(const T* left, Index left_stride, const T* right, Index right_stride, Matrix<T> c, Index depth, bool accumulate) {
  if (!accumulate) std::fill_n(c.data, c.size(), T{});
  Blocking<T> blocking{c.rows, c.cols, depth};
  Eigen::internal::general_matrix_matrix_product<Index, T, Left, false, T, Right, false, Eigen::RowMajor, 1>::run(
      c.rows, c.cols, depth, left, left_stride, right, right_stride, c.data, 1, c.cols, T{1}, blocking, nullptr);
}

template <int Left, int Right, class T>
void product(const Cpu& cpu, Matrix<const T> left, Matrix<const T> right, Matrix<T> c, Index depth, bool accumulate) {
  if (c.size() == 0) return;
  if (depth == 0) {
    if (!accumulate) std::fill_n(c.data, c.size(), T{});
    return;
  }
  if constexpr (std::same_as<T, float>)
    if (has_onednn(cpu))
      return onednn::product({left.data, left.cols, Left == Eigen::ColMajor}, {right.data, right.cols, Right == Eigen::ColMajor}, c, depth,
                             accumulate, cpu.threads);
  eigen_product<Left, Right>(left.data, left.cols, right.data, right.cols, c, depth, accumulate);
}

}  // namespace detail

PDP_INLINE std::string products_name(const Cpu& cpu) {
  if (has_onednn(cpu)) return onednn::name();
  return text("Eigen ", EIGEN_WORLD_VERSION, ".", EIGEN_MAJOR_VERSION, ".", EIGEN_MINOR_VERSION);
}

template <class T>
void gemm(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  detail::product<Eigen::RowMajor, Eigen::RowMajor>(cpu, a, b, c, a.cols, accumulate);
}

template <class T>
void gemm_nt(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  detail::product<Eigen::RowMajor, Eigen::ColMajor>(cpu, a, b, c, a.cols, accumulate);
}

template <class T>
void gemm_tn(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  detail::product<Eigen::ColMajor, Eigen::RowMajor>(cpu, a, b, c, a.rows, accumulate);
}

}  // namespace pdp::cpu
