#pragma once

#include <Eigen/Core>
#include <algorithm>

#include <pdp/core/view.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

namespace detail {

template <class T>
using EigenMatrix = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using EigenMap = Eigen::Map<std::conditional_t<std::is_const_v<T>, const EigenMatrix<T>, EigenMatrix<T>>>;

template <class T>
EigenMap<T> map(Matrix<T> matrix) {
  return {matrix.data, matrix.rows, matrix.cols};
}

/// Eigen packs its operands in memory of its own: on the stack while they are small, from the heap when they are not. Products are cut in
/// blocks that stay small, so that a step allocates nothing.
template <class Product, class C>
void in_blocks(C&& c, Index depth, bool accumulate, Product&& product) {
  constexpr Index bytes = 128 * 1024 / static_cast<Index>(sizeof(typename std::remove_cvref_t<C>::Scalar));
  constexpr Index width = 128, deep = bytes / width;
  if (!accumulate) c.setZero();
  for (Index k = 0; k < depth; k += deep)
    for (Index i = 0; i < c.rows(); i += width)
      for (Index j = 0; j < c.cols(); j += width) {
        const Index rows = std::min(width, c.rows() - i), cols = std::min(width, c.cols() - j);
        c.block(i, j, rows, cols).noalias() += product(i, rows, j, cols, k, std::min(deep, depth - k));
      }
}

}  // namespace detail

/// c (+)= a b.
template <class T>
void gemm(const Cpu&, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  const auto left = detail::map(a), right = detail::map(b);
  detail::in_blocks(detail::map(c), a.cols, accumulate, [&](Index i, Index rows, Index j, Index cols, Index k, Index depth) {
    return left.block(i, k, rows, depth) * right.block(k, j, depth, cols);
  });
}

/// c (+)= a b^T.
template <class T>
void gemm_nt(const Cpu&, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  const auto left = detail::map(a), right = detail::map(b);
  detail::in_blocks(detail::map(c), a.cols, accumulate, [&](Index i, Index rows, Index j, Index cols, Index k, Index depth) {
    return left.block(i, k, rows, depth) * right.block(j, k, cols, depth).transpose();
  });
}

/// c (+)= a^T b.
template <class T>
void gemm_tn(const Cpu&, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  const auto left = detail::map(a), right = detail::map(b);
  detail::in_blocks(detail::map(c), a.rows, accumulate, [&](Index i, Index rows, Index j, Index cols, Index k, Index depth) {
    return left.block(k, i, depth, rows).transpose() * right.block(k, j, depth, cols);
  });
}

}  // namespace pdp::host
