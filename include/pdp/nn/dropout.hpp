#pragma once

#include <pdp/core/device.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>

namespace pdp::nn {

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void dropout_needs_a_probability_from_0_to_below_1(float probability);

}  // namespace detail

/// In a step, sets each value to zero with a probability, and divides the others by 1 - probability. Elsewhere, and if frozen, y = x.
/// Srivastava et al.,
/// "Dropout", JMLR 2014.
///
/// The mask depends on the seed, the layer, the step, and the numbers of the row and the column among those of all ranks (see
/// RowGenerator). So it is the same under every strategy, and on a GPU. Throws ConfigError unless 0 <= probability < 1; in a constant, this
/// is a compile error.
class Dropout : public NoParameters {
 public:
  static constexpr const char* name = "Dropout";
  static constexpr bool is_elementwise = true;
  static constexpr bool uses_row_numbers = true;
  using works_in_place = Dropout;

  constexpr explicit Dropout(float probability) : probability_{probability} {
    if (!(probability >= 0 && probability < 1)) detail::dropout_needs_a_probability_from_0_to_below_1(probability);
  }
  [[nodiscard]] constexpr float probability() const { return probability_; }
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    if (state.pass.is_training)
      drop(device, state.pass, probability_, x, y);
    else if (y.data != x.data)
      copy(device, x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    if (state.pass.is_training)
      drop(device, state.pass, probability_, gradient_y, gradient_x);
    else if (gradient_x.data != gradient_y.data)
      copy(device, gradient_y, gradient_x);
  }

 private:
  float probability_;
};
static_assert(Layer<Dropout>);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/dropout.hpp>
#endif
