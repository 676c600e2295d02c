#pragma once

#include <cstddef>

#include <pdp/core/affine.hpp>
#include <pdp/cuda/detail/state.hpp>
#include <pdp/cuda/kernels/elementwise.cuh>
#include <pdp/cuda/memory.hpp>
#include <pdp/cuda/operations.hpp>

/// Products of matrices, and the forward pass of linear layers, by cuBLASLt.
namespace pdp::cuda {

namespace detail {

/// Computes c = left right, or c += left right if the form accumulates. `bias`: the vector that the form's epilogue adds. With an epilogue,
/// returns false and does nothing if cuBLASLt has no kernel for it, or if the product is empty.
template <class T, class C>
bool product(const Device& device, ProductForm form, Matrix<const T> left, Matrix<const T> right, Matrix<C> c, const void* bias = nullptr) {
  const std::size_t bytes = static_cast<std::size_t>(stored(c).size()) * sizeof(C);
  const bool has_epilogue = form.epilogue != ProductForm::Epilogue::none;
  if (has_epilogue && (bytes == 0 || form.depth == 0)) return false;
  form.type = dtype_of<T>;
  form.result = dtype_of<C>;
  if (bytes > 0 && form.depth > 0) return device.state().run(State::Product{form, left.data, right.data, c.data, bias});
  if (bytes > 0 && !form.accumulate) zero_bytes(device, c.data, bytes);
  return true;
}

/// Returns the epilogue of a product of a forward pass.
constexpr ProductForm::Epilogue epilogue_of(bool has_bias, Activation activation) {
  using enum ProductForm::Epilogue;
  if (activation == Activation::relu) return has_bias ? add_bias_relu : relu;
  return has_bias ? add_bias : none;
}

}  // namespace detail

template <Computed T>
void gemm(const Device& device, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  detail::product(device, {c.rows, c.cols, a.cols, false, false, accumulate}, a, b, c);
}
template <Computed T>
void gemm_nt(const Device& device, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  detail::product(device, {c.rows, c.cols, a.cols, false, true, accumulate}, a, b, c);
}
template <Computed T>
void gemm_tn(const Device& device, Matrix<const T> a, Matrix<const T> b, Matrix<Accumulated<T>> c, bool accumulate) {
  detail::product(device, {c.rows, c.cols, a.rows, true, false, accumulate}, a, b, c);
}

template <Computed T>
void affine(const Device& device, Matrix<const T> x, Matrix<const T> weight, const T* bias, Matrix<T> y, Activation activation) {
  ProductForm form{y.rows, y.cols, x.cols, false, false, false};
  const bool is_allowed = activation == Activation::none || fuses_activations(device);
  form.epilogue = detail::epilogue_of(bias != nullptr, activation);
  if (is_allowed && detail::product(device, form, x, weight, y, bias)) return;
  if (activation == Activation::relu) {
    affine(device, x, weight, bias, y, Activation::none);
    // Not relu(), as nvcc cannot convert a matrix of Float16.
    for_each_element(device, stored(y).size(), kernel::Relu<Stored<T>>{stored(y.data), stored(y.data)});
  } else {
    gemm(device, x, weight, y, false);
    if (bias != nullptr) add_row(device, bias, y);
  }
}
bool fuses_activations(const Device& device) { return device.state().options().fused_relu; }

}  // namespace pdp::cuda
