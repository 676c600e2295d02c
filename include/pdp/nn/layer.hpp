#pragma once

#include <concepts>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn {

/// Where the parameters of a layer lie at present: values and gradients, each in one piece, in the layer's own order. Bound anew for every
/// pass, since gathered parameters move. Gradients are written, or added to where `accumulate` says so; those of values of 16 bits are
/// floats.
template <class T>
struct State {
  const T* value = nullptr;
  Accumulated<T>* gradient = nullptr;
  bool accumulate = false;
};

/// A layer as a user writes it: a literal of sizes that allocates nothing. All shapes are of one sample.
///
/// parameter_elements() and the offsets given to visit() count elements of memory, each parameter padded to a multiple of
/// `parameter_block`.
template <class L>
concept Layer = std::copyable<L> && requires(const L& layer, Shape input, Path path, Index offset, void (*visit)(const Parameter&)) {
  { L::name } -> std::convertible_to<const char*>;
  { layer.input_elements() } -> std::same_as<Index>;  // values of a sample that it takes; 0: any
  { layer.output(input) } -> std::same_as<Shape>;
  { layer.parameter_elements() } -> std::same_as<Index>;
  {
    layer.saved_elements(input)
    } -> std::same_as<Index>;  // kept of each sample from forward to the last of backward, beyond input and output
  layer.parameters(path, offset, visit);
};

/// The mathematics of a layer on a device, in elements T. Rows are samples; there may be none. Backward is in two halves, since schedules
/// part them: the half that passes the gradient on, and the half that leaves the parameters' gradients. Rows do not depend on each other:
/// where nothing is saved, the second half may get those of several micro-batches together. Backward finds x and y as forward left them,
/// but for what the layer says that it does not read (works_in_place, forgets_output).
template <class L, class D, class T>
concept LayerOn = Layer<L> &&
    requires(const L& layer, const D& device, const State<T>& state, Matrix<const T> in, Matrix<T> out, T* saved) {
  layer.forward(device, state, in, out, saved);                 // x -> y
  layer.backward_input(device, state, in, in, in, out, saved);  // x, y, gradient of y -> gradient of x
  layer.backward_weight(device, state, in, in, in, saved);      // x, y, gradient of y -> gradients of the parameters
};

/// A layer whose output is its input's memory.
template <class L>
constexpr bool is_view = requires {
  requires L::is_view;
};

/// A layer whose output may be written over its input, which is gone then, as its backward reads the output alone. It says so by its own
/// name, `using works_in_place = Relu;`, as what is derived from it may have another backward.
template <class L>
constexpr bool works_in_place = requires {
  requires std::same_as<typename L::works_in_place, L>;
};

/// A layer whose output may be written over by the layer after it, as its own backward does not read it; likewise by its name.
template <class L>
constexpr bool forgets_output = requires {
  requires std::same_as<typename L::forgets_output, L>;
};

/// Parameters start on multiples of this many elements.
constexpr Index parameter_block = as_index(alignment / sizeof(float));
constexpr Index padded_parameter(Index elements) { return (elements + parameter_block - 1) / parameter_block * parameter_block; }

/// For layers without parameters.
struct NoParameters {
  [[nodiscard]] constexpr Index parameter_elements() const { return 0; }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  template <class Visit>
  constexpr void parameters(const Path&, Index, Visit&&) const {}
  template <class D, class T>
  void backward_weight(const D&, const State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T>, T*) const {}
};

}  // namespace pdp::nn
