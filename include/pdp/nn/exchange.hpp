#pragma once

#include <pdp/nn/placement.hpp>

namespace pdp::nn {

/// The tensor that must be summed over a tensor-parallel group after forward or backward of a layer.
enum class Exchange { none, output, gradient_of_input };

namespace detail {

/// A layer that computes nothing: its output is the memory of its input, before and after the exchange.
struct View : NoParameters {
  static constexpr bool is_view = true;
  Part part{};  // the rank's part of the layers around it

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }
  template <class D, class T>
  void forward(const D&, const State<T>&, Matrix<const T>, Matrix<T>, T*) const {}
  template <class D, class T>
  void backward_input(const D&, const State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T>, Matrix<T>, T*) const {}
};

}  // namespace detail

/// Stands before layers that are divided over the ranks. Passes its input on in forward, and sums the gradients over the ranks in backward.
/// (f in Shoeybi et al., "Megatron-LM", arXiv:1909.08053.)
struct Replicate : detail::View {
  static constexpr const char* name = "Replicate";
  static constexpr Placement takes = Placement::invariant, gives = Placement::replicated;
  static constexpr Exchange exchange = Exchange::gradient_of_input;

  [[nodiscard]] constexpr Replicate divided(Part among, const Path&) const {
    Replicate other;
    other.part = among;
    return other;
  }
};

/// Stands behind layers that give one term of their output on each rank. Sums the terms over the ranks in forward, and passes the gradient
/// on in backward. (g in the same paper.)
struct AllReduce : detail::View {
  static constexpr const char* name = "AllReduce";
  static constexpr Placement takes = Placement::partial, gives = Placement::invariant;
  static constexpr Exchange exchange = Exchange::output;

  [[nodiscard]] constexpr AllReduce divided(Part among, const Path&) const {
    AllReduce other;
    other.part = among;
    return other;
  }
};

/// Returns the exchange that a layer needs; none if it is not divided.
template <Layer L>
constexpr Exchange exchange_of(const L& layer) {
  if constexpr (requires { L::exchange; })
    return layer.part.count > 1 ? L::exchange : Exchange::none;
  else
    return Exchange::none;
}

}  // namespace pdp::nn
