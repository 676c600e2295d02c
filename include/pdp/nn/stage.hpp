#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/affine.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/layers.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter_memory.hpp>
#include <pdp/nn/pauses.hpp>
#include <pdp/nn/stage_parameters.hpp>

namespace pdp::nn {

/// Pointers to the tensors of one micro-batch in a stage: those at each boundary, and those that each layer saves. Null for a tensor that
/// the rank does not need.
template <class T>
struct Slot {
  Index rows = 0;
  std::vector<T*> activations;  // boundaries 0 .. layers
  std::vector<T*> gradients;
  std::vector<T*> saved;                 // layers
  std::vector<double*> batch_sums{};     // layers; empty if no layer pauses
  const std::int32_t* tokens = nullptr;  // the input of a model of tokens, in place of activations.front()
  Index first_row = 0;                   // in the batch
  Pass pass{};                           // apart from the members that belong to a layer

  explicit Slot(int layers) : activations(as_size(layers) + 1), gradients(as_size(layers) + 1), saved(as_size(layers)) {}
};

namespace detail {

/// Adds the key of the random numbers that a layer draws in its passes.
void append_key_of_passes(std::vector<random::Key>& keys, std::uint64_t seed, const Path& layer);
struct AppendKey {
  std::vector<random::Key>& keys;
  std::uint64_t seed;

  template <class L>
  void operator()(const L&, const Path& path) const {
    append_key_of_passes(keys, seed, path);
  }
};

}  // namespace detail

/// The parameters of a model that a rank holds, and the mathematics of the model's layers.
///
/// `Types`: a TypeList of the distinct types of the layers, LeafTypes of the model. So models of the same layers share the compiled code,
/// whatever their number and order.
template <class Types, class D, class T>
class Stage : public StageParameters<D, T> {
  using Parameters = StageParameters<D, T>;

 public:
  /// Initial values depend on (seed, name of the parameter, element), not on the units. `at`: the path of the model, with which the names
  /// begin, if it is a part of a larger one.
  template <Block Model>
  requires(std::same_as<LeafTypes<Model>, Types>) Stage(const Model& model, const Shape& input, const std::vector<Run>& runs,
                                                        std::uint64_t seed, D device = {}, const Lent<T>& lent = {}, const Path& at = {})
      : Parameters{nn::outline(model, input), parameters_of(model, at), runs, seed, device, lent}, layers_{Layers<Model>{model}} {
    for_each_leaf(model, at, detail::AppendKey{keys_, seed});
  }

  /// Computes layers first to last - 1. On a CPU, several threads may call it at the same time, each with a slot of its own.
  void forward(const Slot<T>& slot, int first, int last) const {
    while (first < last) first = forward_next(slot, first, last);
  }
  /// Computes layer `first`, and the activation behind it if the device does both in one kernel. Returns the first layer that is left.
  int forward_next(const Slot<T>& slot, int first, int last) const {
    const Activation activation = activation_behind(slot, first, last);
    layers_.visit(first, [&]<class L>(const L& layer) {
      const auto state = bound(slot, first, false);
      const auto x = input<L>(slot, first);
      const Matrix<T> y = matrix(slot, slot.activations, first + 1);
      T* const saved = slot.saved[as_size(first)];
      if constexpr (takes_activation<L>)
        layer.forward(this->device(), state, x, y, saved, activation);
      else
        layer.forward(this->device(), state, x, y, saved);
    });
    return activation == Activation::none ? first + 1 : first + 2;
  }

  /// Computes the gradients of the inputs of layers first to last - 1, the last layer first. Skips layers through which no gradient must
  /// pass (Outline::passes_gradient), unless the gradient of the model's own input is needed.
  void backward_input(const Slot<T>& slot, int first, int last, bool needs_input = false) {
    for (int number = last - 1; number >= first; --number) {
      if (!needs_input && !this->outline().passes_gradient(number)) continue;
      layers_.visit(number, [&]<class L>(const L& layer) {
        if constexpr (!takes_tokens<L>)
          layer.backward_input(this->device(), bound(slot, number, false), read(slot, slot.activations, number),
                               read(slot, slot.activations, number + 1), read(slot, slot.gradients, number + 1),
                               matrix(slot, slot.gradients, number), slot.saved[as_size(number)]);
      });
    }
  }

  /// Computes the gradients of the parameters of layers first to last - 1, and adds them to the present ones if `accumulate` is true. Skips
  /// frozen layers.
  void backward_weight(const Slot<T>& slot, int first, int last, bool accumulate) {
    for (int number = last - 1; number >= first; --number) {
      if (this->outline().layers[as_size(number)].is_frozen) continue;
      layers_.visit(number, [&]<class L>(const L& layer) {
        layer.backward_weight(this->device(), bound(slot, number, accumulate), input<L>(slot, number),
                              read(slot, slot.activations, number + 1), read(slot, slot.gradients, number + 1),
                              slot.saved[as_size(number)]);
      });
    }
  }

  /// Throws TokenError if the first layer has no row for a token. Only for a model of tokens, which are in host memory.
  void check_tokens(Matrix<const std::int32_t> tokens) const {
    layers_.visit(0, [&]<class L>(const L& layer) {
      if constexpr (requires { layer.check(tokens); }) layer.check(tokens);
    });
  }

  /// Run a layer up to a pause, before which the ranks add up sums().
  void forward_to_pause(const Slot<T>& slot, int number, Index pause) const {
    layers_.visit(number, [&]<class L>(const L& layer) {
      if constexpr (Pauses<L>)
        layer.forward_part(this->device(), bound(slot, number, false), input<L>(slot, number), matrix(slot, slot.activations, number + 1),
                           slot.saved[as_size(number)], pause);
    });
  }
  void backward_to_pause(const Slot<T>& slot, int number, Index pause) const {
    layers_.visit(number, [&]<class L>(const L& layer) {
      if constexpr (Pauses<L>)
        layer.backward_part(this->device(), bound(slot, number, false), read(slot, slot.activations, number),
                            read(slot, slot.activations, number + 1), read(slot, slot.gradients, number + 1),
                            matrix(slot, slot.gradients, number), slot.saved[as_size(number)], pause);
    });
  }
  /// Calls visit with what the ranks add up in a pause of a layer: numbers, or the elements of a tensor.
  template <class Visit>
  void visit_sums(const Slot<T>& slot, int number, Index pause, bool backward, Visit&& visit) const {
    const PauseSum of = this->outline().sum_of_pause(number, pause, backward);
    if (of.over == SummedOver::batch) visit(std::span<double>{slot.batch_sums[as_size(number)] + of.first, as_size(of.count)});
    if (of.over != SummedOver::parts) return;
    layers_.visit(number, [&]<class L>(const L& layer) {
      if constexpr (ExchangesInside<L>) {
        visit(layer
                  .exchanged(this->outline().layers[as_size(number)].input, slot.rows, matrix(slot, slot.gradients, number),
                             slot.saved[as_size(number)], pause, backward)
                  .values());
      }
    });
  }

  /// Returns a tensor at a boundary: [rows, width of the boundary].
  [[nodiscard]] Matrix<T> activation(const Slot<T>& slot, int boundary) const { return matrix(slot, slot.activations, boundary); }
  [[nodiscard]] Matrix<T> gradient(const Slot<T>& slot, int boundary) const { return matrix(slot, slot.gradients, boundary); }

 private:
  /// Returns the state of a layer in the pass of a slot.
  [[nodiscard]] State<T> bound(const Slot<T>& slot, int number, bool accumulate) const {
    const Outline::Layer& layer = this->outline().layers[as_size(number)];
    State<T> state = this->state(number, accumulate);
    state.pass = slot.pass;
    state.pass.is_training = slot.pass.is_training && !layer.is_frozen;
    state.pass.key = keys_[as_size(number)];
    state.pass.columns = layer.columns;
    state.input = layer.input;
    if (!slot.batch_sums.empty()) state.batch_sums = slot.batch_sums[as_size(number)];
    return state;
  }
  /// Returns the input of a layer of type L.
  template <class L>
  [[nodiscard]] Matrix<const InputOf<L, T>> input(const Slot<T>& slot, int number) const {
    if constexpr (takes_tokens<L>)
      return {slot.tokens, slot.rows, this->outline().width(number)};
    else
      return read(slot, slot.activations, number);
  }
  template <class L>
  static constexpr bool takes_activation = requires(const L& layer, const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y,
                                                    T* saved) {
    layer.forward(device, state, x, y, saved, Activation::none);
  };

  /// Returns the activation of the next layer, if that works in place and this layer can compute it, too; otherwise none.
  [[nodiscard]] Activation activation_behind(const Slot<T>& slot, int number, int last) const {
    const auto after = as_size(number) + 1;
    Activation activation = Activation::none;
    if (!fuses_activations(this->device()) || number + 1 >= last || slot.activations[after] != slot.activations[after + 1])
      return activation;
    layers_.visit(number + 1, [&]<class L>(const L&) { activation = activation_of<L>; });
    layers_.visit(number, [&]<class L>(const L&) {
      if (!takes_activation<L>) activation = Activation::none;
    });
    return activation;
  }
  [[nodiscard]] Matrix<T> matrix(const Slot<T>& slot, const std::vector<T*>& tensors, int boundary) const {
    return {tensors[as_size(boundary)], slot.rows, this->outline().width(boundary)};
  }
  [[nodiscard]] Matrix<const T> read(const Slot<T>& slot, const std::vector<T*>& tensors, int boundary) const {
    return matrix(slot, tensors, boundary);
  }

  LayersOf<Types> layers_;
  std::vector<random::Key> keys_;  // of layers
};

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/stage.hpp>
#endif
