#pragma once

#include <pdp/core/group_normalisation.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>

namespace pdp::nn::detail {

/// The parts that the normalisation layers have in common: parameters and mathematics. There is a weight, which begins as 1, and perhaps a
/// bias, which begins as 0, for each channel.
///
/// Nothing is saved for backward, which computes mean and variance again from x. It reads the rows of x anyway, so they are in the cache.
/// Saved memory is of type T, in which the statistics of 16-bit layers would lose digits. And as nothing is saved, backward_weight may get
/// the rows of several micro-batches together.
struct NormalisationLayer {
  GroupNormalisation how;
  bool has_bias = true;
  bool is_last_dimension = false;  // each vector of the last dimension is normalised, not a whole sample

  [[nodiscard]] constexpr Index parameter_elements() const { return (has_bias ? 2 : 1) * padded_parameter(how.channels); }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    const Index size = how.channels;
    visit(Parameter{path, "weight", size, 0, false, offset, size, size, ones});
    if (has_bias) visit(Parameter{path, "bias", size, 0, false, offset + padded_parameter(size), size, size, zeros});
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y) const {
    normalise(device, how, rows_of(x), state.value, bias_of(state.value), rows_of(y));
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> gradient_y, Matrix<T> gradient_x) const {
    normalise_backward_input(device, how, rows_of(x), state.value, rows_of(gradient_y), rows_of(gradient_x));
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> gradient_y) const {
    normalise_backward_weight(device, how, rows_of(x), rows_of(gradient_y), state.gradient, bias_of(state.gradient), state.accumulate);
  }

 private:
  template <class N>
  [[nodiscard]] constexpr N* bias_of(N* parameters) const {
    return has_bias ? parameters + padded_parameter(how.channels) : nullptr;
  }
  template <class T>
  [[nodiscard]] constexpr Matrix<T> rows_of(Matrix<T> samples) const {
    return is_last_dimension ? vectors(samples, how.channels) : samples;
  }
};

}  // namespace pdp::nn::detail
