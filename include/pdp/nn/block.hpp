#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <pdp/core/copyable.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/misfit.hpp>

namespace pdp::nn {

/// A list of types.
template <class... L>
struct TypeList {
  static constexpr std::size_t size = sizeof...(L);
};

/// A type that holds layers and computes nothing itself. Its leaves, the layers at any depth inside it, run one after another.
///
/// leaves() returns the number of leaves. leaf(number, visit) calls visit(layer) with one of them. for_each_leaf(path, visit) calls
/// visit(layer, its path) with each in order; its path is `path` extended by its position. Both take `visit`, which may have state, as a
/// forwarding reference (Visit&&). Leaves is the TypeList of their distinct types.
template <class C>
concept Container = Copyable<C> && requires(const C& container) {
  { container.leaves() } -> std::same_as<Index>;
  typename C::Leaves;
};

/// A model or a part of one: a layer, or a container of them.
template <class B>
concept Block = Layer<B> || Container<B>;

namespace detail {
/// Whether the layers of a block have numbers in the paths of their parameters.
template <class B>
constexpr bool names_children = Container<B>;
}  // namespace detail

/// Returns the number of leaves; 1 for a layer.
template <Block B>
constexpr Index leaves(const B& block) {
  if constexpr (Container<B>)
    return block.leaves();
  else
    return 1;
}

/// Calls visit(layer) with leaf `number`.
template <Block B, class Visit>
constexpr void leaf(const B& block, Index number, Visit&& visit) {
  if constexpr (Container<B>)
    block.leaf(number, visit);
  else
    visit(block);
}

/// Calls visit(layer, path) with each leaf in order.
template <Block B, class Visit>
constexpr void for_each_leaf(const B& block, const Path& path, Visit&& visit) {
  if constexpr (Container<B>)
    block.for_each_leaf(path, visit);
  else
    visit(block, path);
}

namespace detail {

template <class List, class... More>
struct Append;
template <class... L>
struct Append<TypeList<L...>> {
  using type = TypeList<L...>;
};
template <class... L, class First, class... Rest>
struct Append<TypeList<L...>, First, Rest...> {
  using type = typename Append<std::conditional_t<(std::is_same_v<L, First> || ...), TypeList<L...>, TypeList<L..., First>>, Rest...>::type;
};

template <class List, class... Lists>
struct Union {
  using type = List;
};
template <class List, class... More, class... Lists>
struct Union<List, TypeList<More...>, Lists...> {
  using type = typename Union<typename Append<List, More...>::type, Lists...>::type;
};

template <class B>
struct LeavesOf {
  using type = TypeList<B>;
};
template <Container B>
struct LeavesOf<B> {
  using type = typename B::Leaves;
};

}  // namespace detail

/// The distinct types of the leaves of blocks, as a TypeList. Empty if one of the types is not a block; a static_assert of its container
/// reports that.
template <class... B>
using LeafTypes = typename std::conditional_t<(Block<B> && ...), detail::Union<TypeList<>, typename detail::LeavesOf<B>::type...>,
                                              detail::Union<TypeList<>>>::type;

namespace detail {
template <class List>
constexpr bool first_takes_tokens = false;
template <class First, class... More>
constexpr bool first_takes_tokens<TypeList<First, More...>> = takes_tokens<First>;
}  // namespace detail

/// The element type of the samples of a model with layers of these types (see LeafTypes), if it computes in T.
template <class Types, class T>
using SampleOfLayers = std::conditional_t<detail::first_takes_tokens<Types>, std::int32_t, T>;

/// The element type of a model's samples, if the model computes in T.
template <class Model, class T>
using SampleOf = SampleOfLayers<LeafTypes<std::remove_const_t<Model>>, T>;

/// Whether a layer is an exchange of tensor parallelism (see nn/exchange.hpp).
template <class L>
constexpr bool is_exchange = requires {
  L::exchange;
};

/// Whether a TypeList holds a view (see is_view) that changes the shape.
template <class List>
constexpr bool any_reshapes = false;
template <class... L>
constexpr bool any_reshapes<TypeList<L...>> = ((is_view<L> && !is_exchange<L>) || ...);

/// Whether a TypeList holds a layer that takes tokens.
template <class List>
constexpr bool any_takes_tokens = false;
template <class... L>
constexpr bool any_takes_tokens<TypeList<L...>> = (takes_tokens<L> || ...);

/// Whether a TypeList holds a tied layer (see is_tied).
template <class List>
constexpr bool any_is_tied = false;
template <class... L>
constexpr bool any_is_tied<TypeList<L...>> = (is_tied<L> || ...);

/// Whether a TypeList holds a layer that needs the numbers of its rows (see Pass).
template <class List>
constexpr bool any_uses_row_numbers = false;
template <class... L>
constexpr bool any_uses_row_numbers<TypeList<L...>> = (uses_row_numbers<L> || ...);

/// The result of flow(): the shape of a block's output, or the first layer that does not accept its input.
struct Flow {
  Shape shape{};  // if a layer does not fit: of its input
  Misfit misfit{};
  const char* layer = "";  // if a layer does not fit: its name and path, and the name of the layer before it
  Path at{};
  const char* before = "";  // empty: the layer is the first

  [[nodiscard]] constexpr bool fits() const { return !misfit; }
};

// Not constexpr on purpose: constant evaluation stops at the call, and the compiler shows this name, the layer, and the one before it.
[[noreturn]] void only_the_first_layer_of_a_model_can_take_tokens(const char* layer, const Path& at, const char* before);

namespace detail {

// A function that visits layers, and needs nothing of the type of the block, is a class and not a generic lambda. So it is compiled once
// for a layer's type, and not once more for each block that holds the layer.

/// Follows a Flow through the next layer of a block.
struct FollowFlow {
  Flow& flow;

  template <class L>
  constexpr void operator()(const L& layer, const Path& at) const {
    if (!flow.fits()) return;
    if constexpr (takes_tokens<L>)
      if (flow.before[0] != '\0') only_the_first_layer_of_a_model_can_take_tokens(L::name, at, flow.before);
    flow.misfit = misfit(layer, flow.shape);
    flow.layer = L::name;
    flow.at = at;
    if (!flow.fits()) return;
    const Index expected = layer.input_elements();
    const bool deduce = !ChecksShape<L> && !flow.shape.known() && expected != 0;
    flow.shape = layer.output(deduce ? Shape{expected} : flow.shape);
    flow.before = L::name;
  }
};

struct InputElements {
  Index found = 0;
  bool same = true;  // as long as shapes pass through unchanged, a later layer may still fix the input

  template <class L>
  constexpr void operator()(const L& layer, const Path&) {
    if (found == 0 && same) found = layer.input_elements();
    same = same && layer.output(Shape{}) == Shape{};
  }
};

}  // namespace detail

/// Returns the shape of a sample after a block. The input's shape may be unknown. Throws ConfigError if a layer that takes tokens is not
/// the first. In a constant expression, this is a compile error instead.
template <Block B>
constexpr Flow flow(const B& block, const Shape& input) {
  Flow flow{.shape = input};
  for_each_leaf(block, {}, detail::FollowFlow{flow});
  return flow;
}

// Not constexpr on purpose, as above. The compiler also shows the numbers.
[[noreturn]] void a_layer_expects_another_width_than_the_one_before_it_gives(const char* layer, const Path& at, const char* before,
                                                                             const Shape& input, const Misfit& misfit);

/// Throws ShapeError if a layer does not accept the shape of its input. In a constant expression, this is a compile error instead.
constexpr void check_widths(const Flow& flow) {
  if (!flow.fits()) a_layer_expects_another_width_than_the_one_before_it_gives(flow.layer, flow.at, flow.before, flow.shape, flow.misfit);
}

/// Returns the number of values of a sample that a block takes; 0 if any width will do.
template <Block B>
constexpr Index input_elements(const B& block) {
  detail::InputElements elements;
  for_each_leaf(block, {}, elements);
  return elements.found;
}

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/block.hpp>
#endif
