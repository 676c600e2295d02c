#pragma once

#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/exchange.hpp>

namespace pdp::nn {

/// A model as a schedule sees it: its layers in order, by number, and the sizes that matter. Boundary b is what goes into layer b.
struct Outline {
  struct Layer {
    Index parameters = 0;  // elements in an arena, padding included
    Index in = 0;          // values of a sample
    Index out = 0;
    Index saved = 0;
    bool is_view = false;  // the output is the input's memory
    Exchange exchange = Exchange::none;
    bool works_in_place = false;  // the output may be written over the input, or over it by the next layer: see nn/layer.hpp
    bool forgets_output = false;
  };
  std::vector<Layer> layers;
  int parts = 1;                   // that layers are divided in, over as many ranks
  bool output_is_sharded = false;  // each of these ranks has some columns of it

  [[nodiscard]] constexpr int size() const { return as_int(layers.size()); }
  /// Whether backward must go through a layer: some layer before it holds parameters, or it finds gradients inside itself on the way.
  [[nodiscard]] constexpr bool passes_gradient(int layer) const {
    if (const Layer& own = layers[as_size(layer)]; own.saved > 0 && own.parameters > 0) return true;
    for (int before = 0; before < layer; ++before)
      if (layers[as_size(before)].parameters > 0) return true;
    return false;
  }
  /// Whether what goes into a layer, or comes out of the last one, is the batch itself: only views lie before.
  [[nodiscard]] constexpr bool is_input(int boundary) const {
    for (int layer = 0; layer < boundary; ++layer)
      if (!layers[as_size(layer)].is_view) return false;
    return boundary < size();
  }
  /// Elements of the parameters of layers [first, last), padding included.
  [[nodiscard]] constexpr Index elements(int first, int last) const {
    Index sum = 0;
    for (int layer = first; layer < last; ++layer) sum += layers[as_size(layer)].parameters;
    return sum;
  }
  /// Values of a sample's output, on all ranks together.
  [[nodiscard]] constexpr Index output_width() const { return width(size()) * (output_is_sharded ? parts : 1); }
  /// Values of a sample at a boundary, 0 .. size().
  [[nodiscard]] constexpr Index width(int boundary) const { return boundary == 0 ? layers.front().in : layers[as_size(boundary) - 1].out; }
};

// Not constexpr on purpose, like the check of widths.
[[noreturn]] void a_layer_does_not_take_what_the_one_before_it_leaves(const char* layer, const Path& at, Placement given);
[[noreturn]] void a_model_ends_in_what_no_loss_can_take(Placement given);

/// Outlines a model for samples of a shape. Throws ShapeError where a layer does not take what it is given, and ConfigError where it does
/// not take it as it lies over a tensor-parallel group.
template <Block B>
constexpr Outline outline(const B& model, const Shape& input) {
  check_widths(flow(model, input));
  Outline outline;
  Shape shape = input;
  Placement placement = Placement::invariant;
  for_each_leaf(model, {}, [&]<class L>(const L& layer, const Path& at) {
    const Shape out = layer.output(shape);
    outline.layers.push_back({layer.parameter_elements(), shape.elements(), out.elements(), layer.saved_elements(shape), is_view<L>,
                              exchange_of(layer), works_in_place<L>, forgets_output<L>});
    shape = out;
    const Placement after = placement_after<L>(placement);
    if (after == Placement::misfit) a_layer_does_not_take_what_the_one_before_it_leaves(L::name, at, placement);
    placement = after;
    if constexpr (PlacedLayer<L>) {
      outline.parts = layer.part.count;
      outline.output_is_sharded = L::gives == Placement::sharded && layer.part.count > 1;
    }
  });
  if (placement != Placement::invariant && placement != Placement::sharded) a_model_ends_in_what_no_loss_can_take(placement);
  return outline;
}

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/outline.hpp>
#endif
