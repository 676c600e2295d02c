#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/copyable.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn {

/// Pointers to the parameters of a layer: values and gradients, each contiguous, in the layer's own order. Bound anew for every pass, since
/// gathered parameters move. Gradients are added if `accumulate` is true, and overwritten otherwise. Gradients of 16-bit values are floats.
///
/// A *buffer*, such as a running mean, is a Parameter with is_buffer. backward_weight computes its change for the given rows in place of a
/// gradient: a sum over rows, multiplied by pass.row_scale(). After the step, the changes of all rows of all ranks are added to the buffer,
/// which no optimizer updates.
template <class T>
struct State {
  const T* value = nullptr;
  Accumulated<T>* gradient = nullptr;
  bool accumulate = false;
  Pass pass{};
  Shape input{};                 // of a sample of x
  double* batch_sums = nullptr;  // numbers of the pauses of a step (see nn/pauses.hpp)
};

/// A layer as a user writes it: a literal of sizes that allocates nothing. All shapes are of one sample.
///
/// parameters(path, offset, visit) calls visit with each Parameter, the first at `offset`. Offsets and parameter_elements() count elements
/// in memory, with each parameter padded to a multiple of `parameter_block`.
template <class L>
concept Layer = Copyable<L> && requires(const L& layer, Shape input, Path path, Index offset, void (*visit)(const Parameter&)) {
  { L::name } -> std::convertible_to<const char*>;
  { layer.input_elements() } -> std::same_as<Index>;  // values of a sample that it takes; 0: any
  { layer.output(input) } -> std::same_as<Shape>;
  { layer.parameter_elements() } -> std::same_as<Index>;
  {
    layer.saved_elements(input)
    } -> std::same_as<Index>;  // values of each sample kept from forward to the end of backward, besides input and output
  layer.parameters(path, offset, visit);
};

/// Whether the input of a layer consists of tokens, as that of an embedding does. Such a layer declares `using Input = std::int32_t;`. It
/// can only be the first layer of a model.
template <class L>
constexpr bool takes_tokens = requires {
  requires std::same_as<typename L::Input, std::int32_t>;
};

/// The element type of a layer's input, if the layer computes in T.
template <class L, class T>
using InputOf = std::conditional_t<takes_tokens<L>, std::int32_t, T>;

/// The mathematics of a layer on a device, with elements of type T. Rows are samples; there may be none. Backward is split so that
/// schedules can separate the halves: backward_input computes the gradient of x, backward_weight the gradients of the parameters. Rows do
/// not depend on each other, except in a layer that pauses (nn/pauses.hpp). So if nothing is saved, backward_weight may get the rows of
/// several micro-batches together. Backward gets x and y as forward left them, unless the layer declares that it does not read x
/// (works_in_place) or y (forgets_output). If state.pass.is_training is false in a step, the layer is frozen: backward_input then suits a
/// forward without training, and there is no backward_weight.
///
/// The x of a layer that takes tokens is a Matrix<const std::int32_t>. It has no gradient, so the layer needs no backward_input.
template <class L, class D, class T>
concept LayerOn = Layer<L> && requires(const L& layer, const D& device, const State<T>& state, Matrix<const InputOf<L, T>> x,
                                       Matrix<const T> in, Matrix<T> out, T* saved) {
  layer.forward(device, state, x, out, saved);             // x -> y
  layer.backward_weight(device, state, x, in, in, saved);  // x, y, gradient of y -> gradients of the parameters
  requires takes_tokens<L> || requires {
    layer.backward_input(device, state, x, in, in, out, saved);  // x, y, gradient of y -> gradient of x
  };
};

/// Whether a layer computes with a copy of the first parameter of the model, such as nn::TiedOutput.
template <class L>
constexpr bool is_tied = requires {
  requires L::is_tied;
};

/// Whether a layer's output is the memory of its input.
template <class L>
constexpr bool is_view = requires {
  requires L::is_view;
};

/// Whether a layer's output may overwrite its input, since its backward reads only the output. The layer declares it by its own name,
/// `using works_in_place = Relu;`, as a derived class may have another backward.
template <class L>
constexpr bool works_in_place = requires {
  requires std::same_as<typename L::works_in_place, L>;
};

/// Whether the next layer may overwrite a layer's output, since the layer's own backward does not read it. Declared in the same way: `using
/// forgets_output = Linear;`.
template <class L>
constexpr bool forgets_output = requires {
  requires std::same_as<typename L::forgets_output, L>;
};

/// Parameters start at multiples of this many elements.
constexpr Index parameter_block = as_index(alignment / sizeof(float));
/// Rounds a number of elements up to a multiple of parameter_block.
constexpr Index padded_parameter(Index elements) { return (elements + parameter_block - 1) / parameter_block * parameter_block; }

/// Returns the number of products that a layer computes for a sample of shape `input` in forward. By default, it is that of its parameters.
/// A layer with products of matrices, or with convolutions, that use a parameter several times has a member products(input).
template <Layer L>
constexpr Index products(const L& layer, const Shape& input) {
  if constexpr (requires {
                  { layer.products(input) } -> std::same_as<Index>;
                })
    return layer.products(input);
  else
    return layer.parameter_elements();
}

/// A base class for layers without parameters.
struct NoParameters {
  [[nodiscard]] constexpr Index parameter_elements() const { return 0; }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  template <class Visit>
  constexpr void parameters(const Path&, Index, Visit&&) const {}
  template <class D, class T, class X>
  void backward_weight(const D&, const State<T>&, Matrix<const X>, Matrix<const T>, Matrix<const T>, T*) const {}
};

}  // namespace pdp::nn
