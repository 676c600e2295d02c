#pragma once

#include <type_traits>

#include <pdp/nn/block.hpp>

namespace pdp::nn {

/// How a tensor lies over the ranks of a tensor-parallel group. Layers say in their type what they take and what they give, so a model
/// that lacks a sum between two layers does not compile.
enum class Placement {
  unknown,     // as whatever comes before leaves it
  invariant,   // every rank has all of it, and all of its gradient
  replicated,  // every rank has all of it, but only a part of the sum that is its gradient
  sharded,     // each rank has some columns of it
  partial,     // each rank has one term of the sum that it is
  misfit       // a layer does not take what it is given
};

constexpr const char* name(Placement placement) {
  switch (placement) {
    case Placement::unknown:
      return "unknown";
    case Placement::invariant:
      return "invariant";
    case Placement::replicated:
      return "replicated";
    case Placement::sharded:
      return "sharded";
    case Placement::partial:
      return "partial";
    case Placement::misfit:
      break;
  }
  return "a misfit";
}

/// A layer that is part of tensor parallelism: takes and gives tensors that lie in one way each, and may be one part of a divided layer.
/// divided(part, at): the same layer as that part of it; `at`: where it stands. Throws ShapeError where it cannot be divided so.
template <class L>
concept PlacedLayer = Layer<L> && requires(const L& layer, Part part, Path at) {
  { L::takes } -> std::convertible_to<Placement>;
  { L::gives } -> std::convertible_to<Placement>;
  { layer.part } -> std::convertible_to<Part>;
  { layer.divided(part, at) } -> std::same_as<L>;
};

/// A layer whose output has each of its values from the one value of the input at its place: it does not care which columns it gets.
template <class L>
constexpr bool is_elementwise = is_view<L> || requires {
  requires L::is_elementwise;
};

template <class List>
constexpr bool any_is_placed = false;
template <class... L>
constexpr bool any_is_placed<TypeList<L...>> = (PlacedLayer<L> || ...);

/// How what comes out of a block lies, if what goes in lies so. Containers whose types tell the order of their layers specialise it.
template <class B>
struct PlacementAfter {
  static constexpr Placement of(Placement given) {
    if constexpr (PlacedLayer<B>)
      return given == B::takes || given == Placement::unknown ? B::gives : Placement::misfit;
    else if constexpr (Container<B>)
      return any_is_placed<typename B::Leaves> ? Placement::unknown : whole(given);  // their order is known when the program runs
    else if constexpr (is_elementwise<B>)
      return given == Placement::partial ? Placement::misfit : given;
    else
      return whole(given);
  }

 private:
  static constexpr Placement whole(Placement given) {
    return given == Placement::invariant || given == Placement::unknown ? Placement::invariant : Placement::misfit;
  }
};

/// How what comes out of a block lies over the ranks of a tensor-parallel group.
template <class B>
constexpr Placement placement_after(Placement given) {
  return given == Placement::misfit ? given : PlacementAfter<B>::of(given);
}

/// Whether a model takes a batch, of which every rank has all, and gives what a loss can take: all of the output, or some columns of it.
/// True of what is no block, which its holder has said by then.
template <class Model>
constexpr bool begins_and_ends_whole() {
  if constexpr (!Block<Model>) return true;
  const Placement end = placement_after<Model>(Placement::invariant);
  return end == Placement::invariant || end == Placement::sharded || end == Placement::unknown;
}

/// Two neighbours in a model. The types in the compiler's message are the two layers, and how what the first gives lies.
template <class Before, class After, Placement given>
struct Neighbours {
  static constexpr bool fit = placement_after<After>(given) != Placement::misfit;
  static_assert(
      fit,
      "pdp: the second of these two layers does not take what the first one gives, as it lies over the ranks of a tensor-parallel "
      "group: put nn::AllReduce behind what is partial (RowParallel), nn::Replicate before ColumnParallel, and nothing but "
      "elementwise layers between ColumnParallel and RowParallel");
};

namespace detail {

/// Instantiates Neighbours for each two blocks, which says what does not fit.
template <Placement given, class B>
constexpr bool meet() {
  return true;
}
template <Placement given, class Before, class After, class... Rest>
constexpr bool meet() {
  constexpr Placement between = placement_after<Before>(given);
  if constexpr (between != Placement::misfit) {
    if constexpr (Neighbours<Before, After, between>::fit) return meet<between, After, Rest...>();
  }
  return true;
}

}  // namespace detail

}  // namespace pdp::nn
