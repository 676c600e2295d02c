#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>

/// The operations of a linear layer as one call each, for devices that can do them in one kernel. A device that can has overloads of its
/// own; the templates here compute the same with several operations of any Device.
namespace pdp {

/// What is done to each element of a product.
enum class Activation { none, relu };

/// y = activation(x weight + bias): x [rows, in], weight [in, out], bias [out] or null for none, y [rows, out]. The memory of y is not that
/// of an operand.
template <class D, class T>
void affine(const D& device, Matrix<const T> x, Matrix<const T> weight, const T* bias, Matrix<T> y, Activation activation) {
  gemm(device, x, weight, y, false);
  if (bias != nullptr) add_row(device, bias, y);
  if (activation == Activation::relu) relu(device, Matrix<const T>{y}, y);
}

/// The gradients of the weight, x^T gradient_y, and of the bias, the sum of the rows of gradient_y; `gradient_bias` null: there is no bias.
/// They are added to what is there if `accumulate` is true.
template <class D, class T>
void affine_weight_gradient(const D& device, Matrix<const T> x, Matrix<const T> gradient_y, Matrix<Accumulated<T>> gradient_weight,
                            Accumulated<T>* gradient_bias, bool accumulate) {
  gemm_tn(device, x, gradient_y, gradient_weight, accumulate);
  if (gradient_bias != nullptr) sum_rows(device, gradient_y, gradient_bias, accumulate);
}

/// Whether affine() of this device computes activations in the kernel of the product.
template <class D>
constexpr bool fuses_activations(const D&) {
  return false;
}

}  // namespace pdp
