#pragma once

#include <concepts>
#include <span>
#include <type_traits>
#include <utility>

#include <pdp/core/copyable.hpp>
#include <pdp/core/wrong_argument.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/pauses.hpp>

/// The requirements of the concepts nn::Layer and nn::LayerOn, one static_assert for each. The compiler's message names the wrong function
/// of a layer and the wrong argument.
namespace pdp::nn::detail {

template <class L>
struct LayerRequirements {
  template <class Class>
  static constexpr bool has_forward = requires {
    &Class::forward;
  }
  || requires { &Class::template forward<float>; }
  || requires { &Class::template forward<int, float>; };
  /// Whether the type tries to be a layer.
  static constexpr bool resembles = requires { L::name; }
  || has_forward<L> || requires(const L& layer) { layer.input_elements(); }
  || requires(const L& layer) { layer.parameter_elements(); }
  || requires(const L& layer, Shape shape) { layer.output(shape); };
  static constexpr bool any = !resembles || Layer<L>;

  static_assert(any || Copyable<L>, "pdp: this layer cannot be copied; a layer is a literal of sizes");
  static_assert(
      any ||
          requires {
            { L::name } -> std::convertible_to<const char*>;
          },
      "pdp: this layer needs a name: static constexpr const char* name = \"...\"");
  static_assert(
      any ||
          requires(const L& layer) {
            { layer.input_elements() } -> std::same_as<Index>;
          },
      "pdp: this layer needs the function `Index input_elements() const`: the values of a sample that it takes, or 0 for any");
  static_assert(
      any ||
          requires(const L& layer, Shape input) {
            { layer.output(input) } -> std::same_as<Shape>;
          },
      "pdp: this layer needs the function `Shape output(const Shape& input) const`: the output shape of a sample");
  static_assert(
      any ||
          requires(const L& layer) {
            { layer.parameter_elements() } -> std::same_as<Index>;
          },
      "pdp: this layer needs the function `Index parameter_elements() const`, or the base class nn::NoParameters");
  static_assert(
      any ||
          requires(const L& layer, Shape input) {
            { layer.saved_elements(input) } -> std::same_as<Index>;
          },
      "pdp: this layer needs the function `Index saved_elements(const Shape& input) const`, or the base class nn::NoParameters");
  static_assert(
      any || requires(const L& layer, Path path, Index offset, void (*visit)(const Parameter&)) { layer.parameters(path, offset, visit); },
      "pdp: this layer needs the function `void parameters(const Path& path, Index offset, Visit&& visit) const`, or the base class "
      "nn::NoParameters");
};

/// Whether a type is a block or resembles a layer. If it only resembles one, the compiler has reported what it lacks.
template <class B>
constexpr bool is_or_resembles_block = Block<B> || LayerRequirements<B>::resembles;

template <class L>
struct Forward {
  template <class... A, class Self = const L&>
  auto operator()(A&&... arguments) -> decltype(std::declval<Self>().forward(std::forward<A>(arguments)...));
};
template <class L>
struct BackwardInput {
  template <class... A, class Self = const L&>
  auto operator()(A&&... arguments) -> decltype(std::declval<Self>().backward_input(std::forward<A>(arguments)...));
};
template <class L>
struct BackwardWeight {
  template <class... A, class Self = const L&>
  auto operator()(A&&... arguments) -> decltype(std::declval<Self>().backward_weight(std::forward<A>(arguments)...));
};

/// Whether a type has a function pauses(), which may be constrained.
template <class L>
concept HasPauses = requires(const L& layer) {
  layer.pauses();
};

template <class L, class D, class T>
struct LayerOnRequirements {
  static_assert(
      !HasPauses<L> || Pauses<L>,
      "pdp: this layer has the function pauses(), but not all others that pdp/nn/pauses.hpp requires of a layer that pauses, with these "
      "arguments");

  using X = Matrix<const InputOf<L, T>>;
  using In = Matrix<const T>;
  using Out = Matrix<T>;
  using Others = pdp::detail::Types<In&, Out&, T*&, const T*, std::span<T>, std::span<const T>, State<T>&, D&, Index>;
  template <class Call, class... A>
  static constexpr int wrong(pdp::detail::Types<A...> arguments) {
    return pdp::detail::wrong_argument<Call>(arguments, Others{});
  }
  static constexpr int forward = wrong<Forward<L>>(pdp::detail::Types<const D&, const State<T>&, X&, Out&, T*&>{});
  static constexpr int input =
      takes_tokens<L> ? 0 : wrong<BackwardInput<L>>(pdp::detail::Types<const D&, const State<T>&, X&, In&, In&, Out&, T*&>{});
  static constexpr int weight = wrong<BackwardWeight<L>>(pdp::detail::Types<const D&, const State<T>&, X&, In&, In&, T*&>{});

  static_assert(forward != 1, "pdp: forward of this layer: argument 1, the device, must be `const D& device`");
  static_assert(forward != 2, "pdp: forward of this layer: argument 2, the state, must be `const nn::State<T>& state`");
  static_assert(forward != 3,
                "pdp: forward of this layer: argument 3, x, must be `Matrix<const T> x`, or `Matrix<const std::int32_t> x` if the layer "
                "takes tokens");
  static_assert(forward != 4, "pdp: forward of this layer: argument 4, y, must be `Matrix<T> y`");
  static_assert(forward != 5, "pdp: forward of this layer: argument 5, the saved values, must be `T* saved`");
  static_assert(forward >= 0,
                "pdp: this layer needs the function `void forward(const D& device, const nn::State<T>& state, Matrix<const T> x, "
                "Matrix<T> y, T* saved) const`; it is missing, not const, or takes other arguments");

  static_assert(input != 1, "pdp: backward_input of this layer: argument 1, the device, must be `const D& device`");
  static_assert(input != 2, "pdp: backward_input of this layer: argument 2, the state, must be `const nn::State<T>& state`");
  static_assert(input != 3,
                "pdp: backward_input of this layer: argument 3, x, must be `Matrix<const T> x`, or `Matrix<const std::int32_t> x` if the "
                "layer takes tokens");
  static_assert(input != 4, "pdp: backward_input of this layer: argument 4, y, must be `Matrix<const T> y`");
  static_assert(input != 5, "pdp: backward_input of this layer: argument 5, the gradient of y, must be `Matrix<const T> gradient_y`");
  static_assert(input != 6, "pdp: backward_input of this layer: argument 6, the gradient of x, must be `Matrix<T> gradient_x`");
  static_assert(input != 7, "pdp: backward_input of this layer: argument 7, the saved values, must be `T* saved`");
  static_assert(input >= 0,
                "pdp: this layer needs the function `void backward_input(const D& device, const nn::State<T>& state, Matrix<const T> x, "
                "Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x, T* saved) const`; it is missing, not const, or takes "
                "other arguments");

  static_assert(weight != 1, "pdp: backward_weight of this layer: argument 1, the device, must be `const D& device`");
  static_assert(weight != 2, "pdp: backward_weight of this layer: argument 2, the state, must be `const nn::State<T>& state`");
  static_assert(weight != 3,
                "pdp: backward_weight of this layer: argument 3, x, must be `Matrix<const T> x`, or `Matrix<const std::int32_t> x` if the "
                "layer takes tokens");
  static_assert(weight != 4, "pdp: backward_weight of this layer: argument 4, y, must be `Matrix<const T> y`");
  static_assert(weight != 5, "pdp: backward_weight of this layer: argument 5, the gradient of y, must be `Matrix<const T> gradient_y`");
  static_assert(weight != 6, "pdp: backward_weight of this layer: argument 6, the saved values, must be `T* saved`");
  static_assert(weight >= 0,
                "pdp: this layer needs the function `void backward_weight(const D& device, const nn::State<T>& state, Matrix<const T> x, "
                "Matrix<const T> y, Matrix<const T> gradient_y, T* saved) const`; it is missing, not const, or takes other arguments");
};

/// The distinct types of the layers inside a layer, such as those of a Residual.
template <class L>
struct InnerLayers {
  using type = TypeList<>;
};
template <class L>
requires requires { typename L::Inner; }
struct InnerLayers<L> {
  using type = typename L::Inner;
};

/// Reports which function of a leaf of a model, or of a layer inside a leaf, does not work on a device.
template <class List, class D, class T>
struct LayersOnRequirements {};
template <class L, class D, class T>
struct InnerRequirements : LayersOnRequirements<typename InnerLayers<L>::type, D, T> {};
template <class... L, class D, class T>
struct LayersOnRequirements<TypeList<L...>, D, T> : LayerOnRequirements<L, D, T>..., InnerRequirements<L, D, T>... {};

/// Returns whether all leaves of a model, and the layers inside them, work on a device.
template <class D, class T, class... L>
constexpr bool are_layers_on(TypeList<L...>) {
  return ((LayerOn<L, D, T> && are_layers_on<D, T>(typename InnerLayers<L>::type{})) && ...);
}

}  // namespace pdp::nn::detail
