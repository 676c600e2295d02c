#pragma once

#include <pdp/core/matrix.hpp>

/// The forward pass of a linear layer as one call, for devices that can compute it in one kernel. Such a device defines an overload. The
/// template here computes the same with several operations of any Device.
namespace pdp {

/// A function applied to each element of a product.
enum class Activation { none, relu };

/// Computes y = activation(x weight + bias): x [rows, in], weight [in, out], bias [out] or null for none, y [rows, out]. The memory of y
/// must not be that of an operand.
template <class D, class T>
void affine(const D& device, Matrix<const T> x, Matrix<const T> weight, const T* bias, Matrix<T> y, Activation activation) {
  gemm(device, x, weight, y, false);
  if (bias != nullptr) add_row(device, bias, y);
  if (activation == Activation::relu) relu(device, Matrix<const T>{y}, y);
}

/// Returns whether affine() computes activations in the kernel of the product on this device.
template <class D>
constexpr bool fuses_activations(const D&) {
  return false;
}

}  // namespace pdp
