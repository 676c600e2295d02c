#pragma once

#include <optional>

#include <pdp/core/convolution.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/image.hpp>
#include <pdp/nn/layer.hpp>

namespace pdp::nn {

/// The defaults are those of PyTorch's Conv2d.
struct Conv2dOptions {
  Size2d stride{1};
  Size2d padding{0};  // zeros on both sides of each axis
  Size2d dilation{1};
  Index groups = 1;  // each filter takes the channels of its group only; `groups` = `in` is a depthwise convolution
  bool bias = true;
  Initializer initializer = pytorch_default;      // of the weight
  std::optional<Initializer> bias_initializer{};  // unset: PyTorch's default if the weight has it, otherwise zeros
};

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void a_convolution_needs_channels_that_its_groups_divide(Index in, Index out, Index groups);

}  // namespace detail

/// A convolution of images: [rows, in, height, width] -> [rows, out, rows of windows, columns of windows]. An output value is the sum over
/// channels and positions of a window of weight times x, plus a bias for each of the `out` filters. The number of windows on an axis is
/// (extent + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down. The weight is stored as in PyTorch: [out, in / groups,
/// height, width] of the kernel.
///
///   nn::Conv2d{1, 6, 5, {.padding = 2}}       6 filters of 5 x 5 values
///
/// Throws ConfigError for channels, a kernel, a stride, a dilation or groups below 1, a negative padding, or channels that are not a
/// multiple of the groups; in a constant, this is a compile error.
class Conv2d {
 public:
  static constexpr const char* name = "Conv2d";
  using forgets_output = Conv2d;

  constexpr Conv2d(Index in, Index out, Size2d kernel, const Conv2dOptions& options = {})
      : in_{in}, out_{out}, windows_{kernel, options.stride, options.padding, options.dilation}, options_{options} {
    windows_.check(name);
    if (const Index groups = options.groups; in < 1 || out < 1 || groups < 1 || in % groups != 0 || out % groups != 0)
      detail::a_convolution_needs_channels_that_its_groups_divide(in, out, groups);
  }
  [[nodiscard]] constexpr Index in() const { return in_; }
  [[nodiscard]] constexpr Index out() const { return out_; }
  [[nodiscard]] constexpr Size2d kernel() const { return windows_.size; }
  [[nodiscard]] constexpr const Conv2dOptions& options() const { return options_; }

  /// Returns how it sees images of a shape.
  [[nodiscard]] constexpr Convolution convolution(const Shape& input) const {
    return {in_, out_, options_.groups, windows_.vertical(input[1]), windows_.horizontal(input[2])};
  }

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    if (const Misfit found = detail::misfit_of_image(in_, input)) return found;
    return windows_.misfit(input);
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return windows_.output(out_, input); }
  [[nodiscard]] constexpr Index parameter_elements() const { return weight_elements() + (options_.bias ? padded_parameter(out_) : 0); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  [[nodiscard]] constexpr Index products(const Shape& input) const {
    const Convolution how = convolution(input);
    return how.filters * how.depth() * how.windows();
  }

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    const Index of_kernel = windows_.size.height * windows_.size.width, fan_in = depth(), fan_out = out_ * of_kernel;
    Parameter weight{path, "weight", out_, depth(), false, offset, fan_in, fan_out, options_.initializer};
    weight.row_shape = Shape{in_ / options_.groups, windows_.size.height, windows_.size.width};
    visit(weight);
    const Initializer of_bias = options_.bias_initializer.value_or(options_.initializer == pytorch_default ? pytorch_default : zeros);
    if (options_.bias) visit(Parameter{path, "bias", out_, 0, false, offset + weight_elements(), fan_in, fan_out, of_bias});
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    forward(device, state, x, y, options_.bias);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    convolve_backward_input(device, convolution(state.input), state.value, gradient_y, gradient_x);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y, T*) const {
    convolve_backward_weight(device, convolution(state.input), x, gradient_y, state.gradient,
                             options_.bias ? state.gradient + weight_elements() : nullptr, state.accumulate);
  }

 protected:
  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, bool adds_bias) const {
    convolve(device, convolution(state.input), x, state.value, adds_bias ? state.value + weight_elements() : nullptr, y);
  }

 private:
  [[nodiscard]] constexpr Index depth() const { return in_ / options_.groups * windows_.size.height * windows_.size.width; }
  [[nodiscard]] constexpr Index weight_elements() const { return padded_parameter(out_ * depth()); }

  Index in_, out_;
  detail::Windows2d windows_;
  Conv2dOptions options_;
};
static_assert(Layer<Conv2d> && ChecksShape<Conv2d>);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/conv2d.hpp>
#endif
