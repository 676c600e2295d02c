#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/pauses.hpp>
#include <pdp/nn/placement.hpp>

/// Positions and memory inside the block of a Residual, a Sum or a Concat. They do not depend on the type of the block.
namespace pdp::nn::detail {

/// The position of a leaf in the block, with the sizes of all that comes before it, for one sample.
struct InnerPosition {
  Index leaf = 0;      // exchanges are not counted, so that random numbers are those of the undivided block
  Shape shape{};       // of the leaf's input
  Index boundary = 0;  // outputs of the leaves before; a view has none
  Index kept = 0;      // values that the leaves before save
  Index parameters = 0;
  Index pauses = 0, sums = 0;
  Placement placement = Placement::invariant;  // of the leaf's input
  Part part{};                                 // of the divided layers around it
  bool is_frozen = false;

  template <class T>
  [[nodiscard]] State<T> bind(const State<T>& state) const {
    State<T> own = state;
    own.value += parameters;
    if (own.gradient != nullptr) own.gradient += parameters;
    own.pass.key = random::make_key(state.pass.key.value, leaf);
    own.pass.is_training = state.pass.is_training && !is_frozen;
    own.pass.columns = columns_of(placement, part, shape);
    own.input = shape;
    if (own.batch_sums != nullptr) own.batch_sums += sums;
    return own;
  }
};

/// Returns the number of pauses of a leaf. An exchange, which is a pause of the block around it, counts as one.
template <class L>
constexpr Index pauses_of_leaf(const L& layer) {
  if constexpr (is_exchange<L>)
    return exchange_of(layer) == Exchange::none ? 0 : 1;
  else
    return nn::pauses(layer);
}
/// Returns the position behind a leaf.
template <class L>
constexpr InnerPosition position_after(const L& layer, const InnerPosition& at) {
  const Shape out = layer.output(at.shape);
  return {at.leaf + (is_exchange<L> ? 0 : 1),
          out,
          at.boundary + (is_view<L> ? 0 : out.elements()),
          at.kept + layer.saved_elements(at.shape),
          at.parameters + layer.parameter_elements(),
          at.pauses + pauses_of_leaf(layer),
          at.sums + nn::batch_sums(layer),
          placement_after<L>(at.placement),
          PlacedLayer<L> ? part_of(layer) : at.part};
}

/// Goes on to a leaf, or to the end of the block.
struct GoToLeaf {
  InnerPosition at;
  Index leaves_before = 0;

  template <class L>
  constexpr void operator()(const L& layer, const Path& path) {
    if (leaves_before == 0) at.is_frozen = path.is_frozen();
    if (leaves_before-- > 0) at = position_after(layer, at);
  }
};

/// Totals of the leaves of a block, which do not depend on the shape of its input.
struct InnerTotals {
  Index parameters = 0, pauses = 0, sums = 0;
  bool pauses_in_micro_batches = true;
  Part part{};  // of the divided layers in it

  template <class L>
  constexpr void operator()(const L& layer, const Path& path) {
    parameters += layer.parameter_elements();
    pauses += pauses_of_leaf(layer);
    sums += nn::batch_sums(layer);
    pauses_in_micro_batches = pauses_in_micro_batches && (path.is_frozen() || nn::pauses_in_micro_batches(layer));
    if (const Part own = part_of(layer); own.count > 1) part = own;
  }
};
/// Totals for one shape. `batch_values`: of a sample, in the sum over the batch of fewest values; 0: there is none.
struct InnerWork {
  Shape shape{};  // of the next leaf's input
  Index products = 0, batch_values = 0;

  template <class L>
  constexpr void operator()(const L& layer, const Path& path) {
    products += nn::products(layer, shape);
    const Index values = path.is_frozen() ? 0 : nn::batch_values(layer, shape);
    if (values > 0 && (batch_values == 0 || values < batch_values)) batch_values = values;
    shape = layer.output(shape);
  }
};

/// The saved memory for `rows` samples: outputs of the leaves, their gradients, and what the leaves save.
template <class T>
struct InnerMemory {
  InnerPosition end;
  T* saved;
  Index rows;

  [[nodiscard]] Matrix<T> output(Index boundary, Index width) const { return {saved + boundary * rows, rows, width}; }
  [[nodiscard]] Matrix<T> gradient(Index boundary, Index width) const { return {saved + (end.boundary + boundary) * rows, rows, width}; }
  [[nodiscard]] T* kept(const InnerPosition& at) const { return saved + (2 * end.boundary + at.kept) * rows; }
};

}  // namespace pdp::nn::detail
