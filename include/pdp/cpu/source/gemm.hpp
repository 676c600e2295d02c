#pragma once

/// Definitions for pdp/cpu/gemm.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <concepts>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/onednn/product.hpp>
#include <pdp/cpu/source/eigen_product.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

PDP_INLINE bool has_onednn(const Cpu& cpu) { return cpu.products != Products::eigen && onednn::is_linked(); }

namespace detail {

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
  if (!accumulate) std::fill_n(c.data, c.size(), T{});
  add_product<Left, Right>(left.data, left.cols, right.data, right.cols, c.data, c.cols, {c.rows, c.cols, depth});
}

}  // namespace detail

PDP_INLINE std::string products_name(const Cpu& cpu) {
  if (has_onednn(cpu)) return onednn::name();
  return text("Eigen ", EIGEN_WORLD_VERSION, ".", EIGEN_MAJOR_VERSION, ".", EIGEN_MINOR_VERSION);
}

template <std::floating_point T>
void gemm(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  detail::product<Eigen::RowMajor, Eigen::RowMajor>(cpu, a, b, c, a.cols, accumulate);
}

template <std::floating_point T>
void gemm_nt(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  detail::product<Eigen::RowMajor, Eigen::ColMajor>(cpu, a, b, c, a.cols, accumulate);
}

template <std::floating_point T>
void gemm_tn(const Cpu& cpu, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  detail::product<Eigen::ColMajor, Eigen::RowMajor>(cpu, a, b, c, a.rows, accumulate);
}

}  // namespace pdp::cpu
