#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/pauses.hpp>

namespace pdp::nn {

/// A model as a schedule sees it: its layers in order, by number, and their sizes. Boundary b is the input of layer b.
struct Outline {
  struct Layer {
    Index parameters = 0;  // elements in memory, padding included
    Index in = 0;          // values of a sample
    Index out = 0;
    Index saved = 0;
    bool is_view = false;  // the output is the memory of the input
    Exchange exchange = Exchange::none;
    // works_in_place: the output may overwrite the input. forgets_output: the next layer may overwrite the output. See nn/layer.hpp.
    bool works_in_place = false;
    bool forgets_output = false;
    ColumnNumbers columns{};  // numbers of the input's columns among those of all ranks; they differ only if each rank has some columns
    Shape input{};            // of a sample
    Index products = 0;       // of a sample in forward
    // Those of nn/pauses.hpp: pauses, numbers of all of them, values of a sample in the sum of fewest values, and whether sums over
    // a micro-batch will do.
    Index pauses = 0;
    Index batch_sums = 0;
    Index batch_values = 0;
    bool pauses_in_micro_batches = true;
    Index first_pause = 0;          // the number of pauses of the layers before
    bool exchanges_inside = false;  // pauses for the exchanges of divided layers inside it, also in evaluations
    bool is_frozen = false;         // inside a Frozen
    std::string_view name{};        // of the kind of layer, such as "Linear"
  };
  std::vector<Layer> layers;
  std::vector<PauseSum> forward_sums{}, backward_sums{};  // of the pauses of all layers
  int parts = 1;                                          // number of parts of each divided layer, one a rank
  bool output_is_sharded = false;                         // each of these ranks has some columns of the output
  Shape output{};                                         // of a sample, with the columns of all ranks
  int tied_output = -1;  // the layer with a copy of the parameter of layer 0, such as a TiedOutput; -1: none

  [[nodiscard]] constexpr int size() const { return as_int(layers.size()); }
  /// Returns whether a layer has parameters that are trained.
  [[nodiscard]] constexpr bool trains(int layer) const {
    const Layer& own = layers[as_size(layer)];
    return own.parameters > 0 && !own.is_frozen;
  }
  /// Returns whether a layer shares a parameter with another one, and it is trained. Each of the two has a copy.
  [[nodiscard]] constexpr bool is_tied(int layer) const {
    return tied_output >= 0 && (layer == 0 || layer == tied_output) && trains(layer);
  }
  /// Returns whether layers [first, last) have parameters, but none that are trained.
  [[nodiscard]] constexpr bool is_frozen(int first, int last) const {
    for (int layer = first; layer < last; ++layer)
      if (trains(layer)) return false;
    return elements(first, last) > 0;
  }
  /// Returns whether a layer pauses in a step, or in an evaluation.
  [[nodiscard]] constexpr bool pauses(int layer, bool training) const {
    const Layer& own = layers[as_size(layer)];
    return own.pauses > 0 && ((training && !own.is_frozen) || own.exchanges_inside);
  }
  /// Returns whether a layer pauses in backward of a step. A frozen one through which no gradient passes does nothing there.
  [[nodiscard]] constexpr bool pauses_in_backward(int layer) const {
    return pauses(layer, true) && (!layers[as_size(layer)].is_frozen || passes_gradient(layer));
  }
  /// Returns whether a layer has numbers that the ranks add up over the batch. A frozen one has none, as in an evaluation.
  [[nodiscard]] constexpr bool sums_over_batch(int layer, bool training) const {
    const Layer& own = layers[as_size(layer)];
    return training && own.batch_sums > 0 && !own.is_frozen;
  }
  /// Returns what the ranks add up in a pause of a layer.
  [[nodiscard]] constexpr PauseSum sum_of_pause(int layer, Index pause, bool backward) const {
    return (backward ? backward_sums : forward_sums)[as_size(layers[as_size(layer)].first_pause + pause)];
  }
  /// Returns how many numbers the pauses of all layers need in a step.
  [[nodiscard]] constexpr Index batch_sums() const {
    Index sum = 0;
    for (const Layer& layer : layers) sum += layer.batch_sums;
    return sum;
  }
  /// Returns whether backward_input of a layer must run: an earlier layer is trained, or the layer's own backward_weight reads gradients
  /// that backward_input saves (as in Residual).
  [[nodiscard]] constexpr bool passes_gradient(int layer) const {
    return (layers[as_size(layer)].saved > 0 && trains(layer)) || trains_before(layer);
  }
  /// Returns whether a layer before this one is trained.
  [[nodiscard]] constexpr bool trains_before(int layer) const {
    for (int before = 0; before < layer; ++before)
      if (trains(before)) return true;
    return false;
  }
  /// Returns whether the tensor at a boundary is the batch itself: only views lie before it. False for the output of the last layer.
  [[nodiscard]] constexpr bool is_input(int boundary) const {
    for (int layer = 0; layer < boundary; ++layer)
      if (!layers[as_size(layer)].is_view) return false;
    return boundary < size();
  }
  /// Returns the elements of the parameters of layers [first, last), padding included.
  [[nodiscard]] constexpr Index elements(int first, int last) const {
    Index sum = 0;
    for (int layer = first; layer < last; ++layer) sum += layers[as_size(layer)].parameters;
    return sum;
  }
  /// Returns the number of values of a sample's output, of all ranks together.
  [[nodiscard]] constexpr Index output_width() const { return width(size()) * (output_is_sharded ? parts : 1); }
  /// Returns the number of values of a sample at a boundary, 0 .. size().
  [[nodiscard]] constexpr Index width(int boundary) const { return boundary == 0 ? layers.front().in : layers[as_size(boundary) - 1].out; }
};

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void a_model_ends_in_what_no_loss_can_take(Placement given);
[[noreturn]] void a_model_has_two_layers_that_are_tied_to_its_embedding(const char* layer, const Path& at);
[[noreturn]] void a_tied_layer_does_not_fit_its_embedding(const char* layer, const Parameter& copy, const Parameter& of);

/// Throws ConfigError unless a copy of a parameter lies in memory as the parameter does, is divided in the same way, and is frozen if the
/// parameter is.
constexpr void check_copy(const char* layer, const Parameter& copy, const Parameter& of) {
  if (copy.rows != of.rows || copy.cols != of.cols || copy.transposed != of.transposed || copy.order != of.order ||
      copy.row_part != of.row_part || copy.col_part != of.col_part || copy.layer.is_frozen() != of.layer.is_frozen())
    a_tied_layer_does_not_fit_its_embedding(layer, copy, of);
}

namespace detail {

/// An outline of a model's first layers.
struct PartialOutline {
  Outline outline{};
  int next = 0;   // the number of the next layer
  Shape shape{};  // of its input
  Placement placement = Placement::invariant;
  Part part{};        // of the divided layers
  Parameter table{};  // the parameter of the first layer, if it takes tokens
};

/// Adds the next layer.
template <class L>
constexpr void add_layer(PartialOutline& to, const L& layer, const Path& at) {
  Outline& outline = to.outline;
  const Shape shape = to.shape;
  if constexpr (takes_tokens<L>)
    layer.parameters(at, 0, [&](const Parameter& parameter) { to.table = to.table.rows > 0 ? to.table : parameter; });
  if constexpr (is_tied<L>) {
    layer.parameters(at, 0, [&](const Parameter& copy) {
      check_copy(L::name, copy, to.table);
      if (outline.layers.front().parameters != layer.parameter_elements()) a_tied_layer_does_not_fit_its_embedding(L::name, copy, to.table);
    });
    if (outline.tied_output >= 0) a_model_has_two_layers_that_are_tied_to_its_embedding(L::name, at);
    outline.tied_output = to.next;
  }
  const Shape out = layer.output(shape);
  const ColumnNumbers columns = columns_of(to.placement, to.part, shape);
  const auto first_pause = as_index(outline.forward_sums.size());
  if constexpr (Pauses<L>) {
    for (Index pause = 0; pause < pauses(layer); ++pause) {
      outline.forward_sums.push_back(sums_of_pause(layer, shape, pause, false));
      outline.backward_sums.push_back(sums_of_pause(layer, shape, pause, true));
    }
  }
  outline.layers[as_size(to.next++)] = {layer.parameter_elements(),
                                        shape.elements(),
                                        out.elements(),
                                        layer.saved_elements(shape),
                                        is_view<L>,
                                        exchange_of(layer),
                                        works_in_place<L>,
                                        forgets_output<L>,
                                        columns,
                                        shape,
                                        products(layer, shape),
                                        pauses(layer),
                                        batch_sums(layer),
                                        batch_values(layer, shape),
                                        pauses_in_micro_batches(layer),
                                        first_pause,
                                        exchanges(layer),
                                        at.is_frozen(),
                                        L::name};
  // The columns of several vectors, each divided over ranks, are not some columns of the one vector that Flatten makes of them.
  const bool is_divided = to.placement == Placement::sharded || to.placement == Placement::channels;
  const bool joins_parts = is_view<L> && !PlacedLayer<L> && is_divided && out.rank() != shape.rank();
  to.shape = out;
  const Placement after = joins_parts ? Placement::misfit : placement_after<L>(to.placement);
  if (after == Placement::misfit) a_layer_does_not_take_what_the_one_before_it_leaves(L::name, at, to.placement);
  to.placement = after;
  if constexpr (PlacedLayer<L>) {
    to.part = layer.part;
    outline.output_is_sharded = L::gives == Placement::sharded && to.part.count > 1;
  }
  outline.parts = std::max(outline.parts, part_of(layer).count);
}
struct AddLayer {
  PartialOutline& to;

  template <class L>
  constexpr void operator()(const L& layer, const Path& at) const {
    add_layer(to, layer, at);
  }
};

}  // namespace detail

/// Outlines a model for samples of shape `input`. Throws ShapeError if a layer does not accept the width of its input. Throws ConfigError
/// if a layer does not accept the placement of its input over a tensor-parallel group, or no loss accepts that of the output.
template <Block B>
constexpr Outline outline(const B& model, const Shape& input) {
  static_assert(!any_is_tied<LeafTypes<B>> || detail::first_takes_tokens<LeafTypes<B>>,
                "pdp: a model with nn::TiedOutput must begin with the nn::Embedding whose table it takes");
  check_widths(flow(model, input));
  detail::PartialOutline whole{.shape = input};
  Outline& outline = whole.outline;
  outline.layers.resize(as_size(leaves(model)));  // with push_back, g++ 14 warns of an overflow that cannot happen
  for_each_leaf(model, {}, detail::AddLayer{whole});
  const Shape& shape = whole.shape;
  outline.output = outline.output_is_sharded ? shape.with_last(shape.last() * outline.parts) : shape;
  if (whole.placement != Placement::invariant && whole.placement != Placement::sharded)
    a_model_ends_in_what_no_loss_can_take(whole.placement);
  return std::move(outline);
}

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/outline.hpp>
#endif
