#pragma once

#include <pdp/core/batch_normalisation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/misfit.hpp>
#include <pdp/nn/normalisation_options.hpp>
#include <pdp/nn/pauses.hpp>

namespace pdp::nn {

/// y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel: [rows, channels, ...] -> the same. In a step, mean and variance
/// are those of the channel in the whole batch, of all ranks together. Elsewhere, and if frozen, they are the running ones, which are
/// buffers: after each step they move by `momentum` to those of the batch. Ioffe, Szegedy, "Batch normalization", ICML 2015.
///
/// A strategy that cuts the batch into micro-batches is refused, unless per_micro_batch allows the statistics of a micro-batch (over all
/// ranks) in their place; the losses are then not those of serial training. A batch in which a channel has a single value is an error; in a
/// micro-batch of a single value, y is the bias.
///
/// A model throws ConfigError unless eps is 0 or more and momentum from 0 to 1; in a constant, this is a compile error.
struct BatchNorm {
  static constexpr const char* name = "BatchNorm";
  using forgets_output = BatchNorm;

  Index channels = 0;
  double eps = 1e-5;
  double momentum = 0.1;
  bool per_micro_batch = false;

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    if (!input.rank_is_known() || input[0] == Shape::any || input[0] == channels) return {};
    return {"channels (the first dimension)", channels, input[0]};
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    detail::check_eps(name, eps);
    detail::check_momentum(momentum);
    return input;
  }
  [[nodiscard]] constexpr Index parameter_elements() const { return 4 * block(); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    Parameter parameter{
        .layer = path, .name = "weight", .rows = channels, .offset = offset, .fan_in = channels, .fan_out = channels, .initializer = ones};
    visit(parameter);
    const auto next = [&](const char* of, const Initializer& initializer, bool is_buffer) {
      parameter.name = of;
      parameter.offset += block();
      parameter.initializer = initializer;
      parameter.is_buffer = is_buffer;
      visit(parameter);
    };
    next("bias", zeros, false);
    next("running_mean", zeros, true);
    next("running_var", ones, true);
  }

  [[nodiscard]] constexpr Index pauses() const { return 1; }
  [[nodiscard]] constexpr Index batch_sums() const { return how(Shape{}).all_sums(); }
  [[nodiscard]] constexpr PauseSum sums_of_pause(const Shape&, Index, bool backward) const {
    const BatchNormalisation of = how(Shape{});
    return backward ? PauseSum{SummedOver::batch, of.forward_sums(), of.backward_sums()}
                    : PauseSum{SummedOver::batch, 0, of.forward_sums()};
  }
  [[nodiscard]] constexpr Index batch_values(const Shape& input) const { return how(input).positions; }
  [[nodiscard]] constexpr bool pauses_in_micro_batches() const { return per_micro_batch; }

  template <class D, class T>
  void forward_part(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T>, T*, Index) const {
    if (state.pass.is_training) batch_statistics(device, how(state.input), x, mean(state), state.batch_sums);
  }
  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    if (state.pass.is_training)
      batch_normalise(device, how(state.input), x, mean(state), static_cast<const double*>(state.batch_sums), state.value, bias(state), y);
    else
      normalise_channels(device, how(state.input), x, mean(state), mean(state) + block(), state.value, bias(state), y);
  }
  template <class D, class T>
  void backward_part(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y, Matrix<T>, T*,
                     Index) const {
    if (state.pass.is_training) batch_gradient_sums(device, how(state.input), x, mean(state), gradient_y, state.batch_sums);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    constexpr const T* zero = nullptr;
    if (state.pass.is_training)
      batch_normalise_backward(device, how(state.input), x, mean(state), static_cast<const double*>(state.batch_sums), state.value,
                               gradient_y, gradient_x);
    else
      normalise_channels(device, how(state.input), gradient_y, zero, mean(state) + block(), state.value, zero, gradient_x);
  }
  /// Must follow backward_part, also if no gradient goes further back.
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T>, T*) const {
    batch_parameter_gradients(device, how(state.input), x.rows, momentum, state.pass.numbers, mean(state), mean(state) + block(),
                              static_cast<const double*>(state.batch_sums), block(), state.gradient, state.accumulate);
  }

 private:
  [[nodiscard]] constexpr Index block() const { return padded_parameter(channels); }
  [[nodiscard]] constexpr BatchNormalisation how(const Shape& input) const {
    return {channels, input.known() && channels > 0 ? input.elements() / channels : 1, eps};
  }
  template <class T>
  [[nodiscard]] const T* bias(const State<T>& state) const {
    return state.value + block();
  }
  template <class T>
  [[nodiscard]] const T* mean(const State<T>& state) const {
    return state.value + 2 * block();
  }
};
static_assert(Layer<BatchNorm> && ChecksShape<BatchNorm> && Pauses<BatchNorm>);

}  // namespace pdp::nn
