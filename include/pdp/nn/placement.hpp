#pragma once

#include <type_traits>

#include <pdp/core/pass.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/pauses.hpp>

namespace pdp::nn {

/// The distribution of a tensor over the ranks of a tensor-parallel group. A layer's type says which placement it takes and gives, so a
/// model that lacks a sum between two layers does not compile.
enum class Placement {
  unknown,     // any: the layers before decide
  invariant,   // every rank has all of it, and all of its gradient
  replicated,  // every rank has all of it, but only one term of its gradient
  sharded,     // each rank has some columns of it
  channels,    // each rank has some channels of it: images
  partial,     // each rank has one term of a sum
  misfit       // a layer does not accept the placement of its input
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
    case Placement::channels:
      return "divided by channels";
    case Placement::partial:
      return "partial";
    case Placement::misfit:
      break;
  }
  return "a misfit";
}

/// A layer of tensor parallelism: it takes tensors of one placement and gives tensors of one placement, and may be one part of a divided
/// layer. divided(part, at) returns that part of the layer at path `at`. It throws ShapeError if the layer cannot be divided so.
template <class L>
concept PlacedLayer = Layer<L> && requires(const L& layer, Part part, Path at) {
  { L::takes } -> std::convertible_to<Placement>;
  { L::gives } -> std::convertible_to<Placement>;
  { layer.part } -> std::convertible_to<Part>;
  { layer.divided(part, at) } -> std::same_as<L>;
};

/// Whether each value of a layer's output depends only on the input's value at the same position. So the layer can compute any subset of
/// the columns.
template <class L>
constexpr bool is_elementwise = is_view<L> || requires {
  requires L::is_elementwise;
};

/// Whether a layer computes each channel of an image from the same channel alone. Pooling does.
template <class L>
constexpr bool is_channelwise = requires {
  requires L::is_channelwise;
};

/// Returns a rank's part of the layers: that of a PlacedLayer, or of divided layers inside a layer (see nn/pauses.hpp).
template <Layer L>
constexpr Part part_of(const L& layer) {
  if constexpr (PlacedLayer<L>)
    return layer.part;
  else if constexpr (ExchangesInside<L>)
    return layer.inner_part();
  else
    return {};
}

/// Returns the numbers of a rank's columns of a tensor among those of all ranks. `part`: of the layers around the tensor. `shape`: of this
/// rank's part of a sample.
constexpr ColumnNumbers columns_of(Placement placement, Part part, const Shape& shape) {
  if (part.count == 1 || (placement != Placement::sharded && placement != Placement::channels)) return {};
  const Index own = placement == Placement::sharded ? shape.last() : shape.elements();
  return {part.index * own, own, part.count * own};
}

/// Whether a TypeList holds a PlacedLayer.
template <class List>
constexpr bool any_is_placed = false;
template <class... L>
constexpr bool any_is_placed<TypeList<L...>> = (PlacedLayer<L> || ...);

/// Computes the placement of a block's output from that of its input. Containers with types that fix the order of layers specialise it.
template <class B>
struct PlacementAfter {
  static constexpr Placement of(Placement given) {
    if constexpr (PlacedLayer<B>)
      return given == B::takes || given == Placement::unknown ? B::gives : Placement::misfit;
    else if constexpr (Container<B>)
      return any_is_placed<typename B::Leaves> ? Placement::unknown : whole(given);  // their order is known only at run time
    else if constexpr (is_elementwise<B>)
      return given == Placement::partial ? Placement::misfit : given;
    else if constexpr (is_channelwise<B>)
      return given == Placement::channels ? given : whole(given);
    else
      return whole(given);
  }

 private:
  static constexpr Placement whole(Placement given) {
    return given == Placement::invariant || given == Placement::unknown ? Placement::invariant : Placement::misfit;
  }
};

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void a_layer_does_not_take_what_the_one_before_it_leaves(const char* layer, const Path& at, Placement given);

/// Returns the placement of a block's output, given that of its input.
template <class B>
constexpr Placement placement_after(Placement given) {
  return given == Placement::misfit ? given : PlacementAfter<B>::of(given);
}

/// Returns whether a model takes a batch that every rank has in full, and gives an output that a loss accepts: in full, or some columns on
/// each rank. True for a type that is not a block, which another static_assert reports.
template <class Model>
constexpr bool begins_and_ends_whole() {
  if constexpr (!Block<Model>) return true;
  const Placement end = placement_after<Model>(Placement::invariant);
  return end == Placement::invariant || end == Placement::sharded || end == Placement::unknown;
}

/// Two neighbours in a model. The compiler's message names the two layers, and the placement of the first one's output.
template <class Before, class After, Placement given>
struct Neighbours {
  static constexpr bool fit = placement_after<After>(given) != Placement::misfit;
  static_assert(fit,
                "pdp: the second of these two layers does not accept the placement of the first one's output over a tensor-parallel "
                "group: put nn::AllReduce behind partial outputs (such as those of RowParallel), nn::Replicate before ColumnParallel and "
                "the like, nothing but elementwise layers between ColumnParallel and RowParallel, and nothing but layers that keep "
                "channels apart (ChannelParallel for norms) between OutputParallelConv2d and InputParallelConv2d");
};

namespace detail {

/// Whether a block takes its input in full on each rank of a tensor-parallel group, and gives its output so.
template <class B>
constexpr bool begins_and_ends_in_full() {
  if constexpr (Block<B>) {
    const Placement end = placement_after<B>(Placement::invariant);
    return end == Placement::invariant || end == Placement::unknown;
  }
  return true;  // another static_assert reports it
}

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void the_block_of_a_layer_does_not_give_its_output_in_full(Placement given);

struct FollowPlacement {
  Placement placement = Placement::invariant;

  template <class L>
  constexpr void operator()(const L&, const Path& at) {
    const Placement after = placement_after<L>(placement);
    if (after == Placement::misfit) a_layer_does_not_take_what_the_one_before_it_leaves(L::name, at, placement);
    placement = after;
  }
};

/// Throws ConfigError if a layer of such a block does not accept the placement of its input, or the block does not give its output in full.
template <Block B>
constexpr void check_placements(const B& block) {
  if constexpr (any_is_placed<LeafTypes<B>>) {
    FollowPlacement follow;
    for_each_leaf(block, {}, follow);
    if (follow.placement != Placement::invariant) the_block_of_a_layer_does_not_give_its_output_in_full(follow.placement);
  }
}

/// Whether leaves of a block, whose types are in a TypeList, may pause inside a layer, or exchange there.
template <class List>
constexpr bool any_exchanges_inside = false;
template <class... L>
constexpr bool any_exchanges_inside<TypeList<L...>> = ((is_exchange<L> || ExchangesInside<L>) || ...);
template <class List>
constexpr bool any_pauses_inside = any_pauses<List> || any_exchanges_inside<List>;

/// Instantiates Neighbours for each two successive blocks, which reports a misfit.
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

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/placement.hpp>
#endif
