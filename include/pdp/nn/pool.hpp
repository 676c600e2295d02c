#pragma once

#include <pdp/core/pooling.hpp>
#include <pdp/nn/image.hpp>
#include <pdp/nn/layer.hpp>

/// Layers that take one value from each window of each channel: [rows, channels, height, width] -> [rows, channels, rows of windows,
/// columns of windows]. The number of windows on an axis is (extent + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down.
namespace pdp::nn {

/// The stride of windows that lie side by side.
inline constexpr Size2d same_as_kernel{-1};

/// By default, windows lie side by side. The padding is on both sides of each axis, and at most half of a window.
struct MaxPool2dOptions {
  Size2d stride = same_as_kernel;
  Size2d padding{0};
  Size2d dilation{1};
};
struct AvgPool2dOptions {
  Size2d stride = same_as_kernel;
  Size2d padding{0};
  bool counts_padding = true;  // as zeros; PyTorch's count_include_pad
};

namespace detail {

/// The parts that pooling with a kernel has in common.
class Pool : public NoParameters {
 public:
  static constexpr bool is_channelwise = true;

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    if (const Misfit found = misfit_of_image(Shape::any, input)) return found;
    return windows_.misfit(input);
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    return windows_.output(input.rank_is_known() ? input[0] : Shape::any, input);
  }
  /// Returns how it sees images of a shape.
  [[nodiscard]] constexpr Pooling pooling(const Shape& input) const {
    return {input[0], windows_.vertical(input[1]), windows_.horizontal(input[2]), counts_padding_};
  }

 protected:
  static constexpr Size2d stride_of(Size2d kernel, Size2d stride) { return stride == same_as_kernel ? kernel : stride; }
  constexpr Pool(const char* layer, const Windows2d& windows, bool counts_padding) : windows_{windows}, counts_padding_{counts_padding} {
    windows.check(layer);
    const Size2d reach{windows.vertical(1).reach(), windows.horizontal(1).reach()};
    if (2 * windows.padding.height > reach.height || 2 * windows.padding.width > reach.width)
      the_padding_of_a_pooling_layer_is_more_than_half_of_its_window(layer, windows.padding, reach);
  }

 private:
  Windows2d windows_;
  bool counts_padding_;
};

}  // namespace detail

/// The largest value of each window. Positions outside the image do not count. In backward, the first of several largest values gets the
/// gradient. Throws ConfigError for a kernel, a stride or a dilation below 1, a negative padding, or one of more than half a window; in a
/// constant, this is a compile error.
class MaxPool2d : public detail::Pool {
 public:
  static constexpr const char* name = "MaxPool2d";

  constexpr explicit MaxPool2d(Size2d kernel, const MaxPool2dOptions& options = {})
      : Pool{name, {kernel, stride_of(kernel, options.stride), options.padding, options.dilation}, false} {}

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    max_pool(device, pooling(state.input), x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    max_pool_backward(device, pooling(state.input), x, y, gradient_y, gradient_x);
  }
};
static_assert(Layer<MaxPool2d> && ChecksShape<MaxPool2d>);

/// The mean of each window. Throws as MaxPool2d does.
class AvgPool2d : public detail::Pool {
 public:
  static constexpr const char* name = "AvgPool2d";
  using forgets_output = AvgPool2d;

  constexpr explicit AvgPool2d(Size2d kernel, const AvgPool2dOptions& options = {})
      : Pool{name, {kernel, stride_of(kernel, options.stride), options.padding}, options.counts_padding} {}

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    average_pool(device, pooling(state.input), x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    average_pool_backward(device, pooling(state.input), gradient_y, gradient_x);
  }
};
static_assert(Layer<AvgPool2d> && ChecksShape<AvgPool2d>);

/// The means of `size` windows that together cover the image, of nearly equal size: window i on an axis of n positions begins at i n /
/// size, rounded down, and ends at (i + 1) n / size, rounded up. Throws ConfigError unless there is a window; in a constant, this is a
/// compile error.
class AdaptiveAvgPool2d : public NoParameters {
 public:
  static constexpr bool is_channelwise = true;
  static constexpr const char* name = "AdaptiveAvgPool2d";
  using forgets_output = AdaptiveAvgPool2d;

  constexpr explicit AdaptiveAvgPool2d(Size2d size) : size_{size} { detail::check_least(name, "size", size, 1); }

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const { return detail::misfit_of_image(Shape::any, input); }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    return Shape{input.rank_is_known() ? input[0] : Shape::any, size_.height, size_.width};
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    average_pool(device, how(state.input), x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    average_pool_backward(device, how(state.input), gradient_y, gradient_x);
  }

 private:
  [[nodiscard]] constexpr AdaptivePooling how(const Shape& input) const {
    return {input[0], {input[1], size_.height}, {input[2], size_.width}};
  }

  Size2d size_;
};
static_assert(Layer<AdaptiveAvgPool2d> && ChecksShape<AdaptiveAvgPool2d>);

}  // namespace pdp::nn
