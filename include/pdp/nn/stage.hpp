#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/nn/layers.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter_memory.hpp>
#include <pdp/nn/stage_parameters.hpp>

namespace pdp::nn {

/// What one micro-batch needs of a stage: where the tensors at each boundary lie, and what each layer saves. Null where a rank does not
/// need one.
template <class T>
struct Slot {
  Index rows = 0;
  std::vector<T*> activations;  // boundaries 0 .. layers
  std::vector<T*> gradients;
  std::vector<T*> saved;  // layers

  explicit Slot(int layers) : activations(as_size(layers) + 1), gradients(as_size(layers) + 1), saved(as_size(layers)) {}
};

/// The parameters that a rank holds of a model, and the mathematics of its layers.
template <Block Model, class D, class T>
class Stage : public StageParameters<D, T> {
  using Parameters = StageParameters<D, T>;

 public:
  /// Parameters start from (seed, name, element), whatever the units are.
  Stage(const Model& model, const Shape& input, const std::vector<Run>& runs, std::uint64_t seed, D device = {}, const Lent<T>& lent = {})
      : Parameters{nn::outline(model, input), parameters_of(model), runs, seed, device, lent}, layers_{model} {}

  void forward(const Slot<T>& slot, int first, int last) {
    for (int number = first; number < last; ++number)
      layers_.visit(number, [&](const auto& layer) {
        layer.forward(this->device(), this->state(number, false), read(slot, slot.activations, number),
                      matrix(slot, slot.activations, number + 1), slot.saved[as_size(number)]);
      });
  }

  /// Does nothing where no parameter waits for the gradient.
  void backward_input(const Slot<T>& slot, int first, int last) {
    for (int number = last - 1; number >= first; --number) {
      if (!this->outline().passes_gradient(number)) continue;
      layers_.visit(number, [&](const auto& layer) {
        layer.backward_input(this->device(), this->state(number, false), read(slot, slot.activations, number),
                             read(slot, slot.activations, number + 1), read(slot, slot.gradients, number + 1),
                             matrix(slot, slot.gradients, number), slot.saved[as_size(number)]);
      });
    }
  }

  void backward_weight(const Slot<T>& slot, int first, int last, bool accumulate) {
    for (int number = last - 1; number >= first; --number)
      layers_.visit(number, [&](const auto& layer) {
        layer.backward_weight(this->device(), this->state(number, accumulate), read(slot, slot.activations, number),
                              read(slot, slot.activations, number + 1), read(slot, slot.gradients, number + 1),
                              slot.saved[as_size(number)]);
      });
  }

  [[nodiscard]] Matrix<T> activation(const Slot<T>& slot, int boundary) const { return matrix(slot, slot.activations, boundary); }
  [[nodiscard]] Matrix<T> gradient(const Slot<T>& slot, int boundary) const { return matrix(slot, slot.gradients, boundary); }

 private:
  [[nodiscard]] Matrix<T> matrix(const Slot<T>& slot, const std::vector<T*>& tensors, int boundary) const {
    return {tensors[as_size(boundary)], slot.rows, this->outline().width(boundary)};
  }
  [[nodiscard]] Matrix<const T> read(const Slot<T>& slot, const std::vector<T*>& tensors, int boundary) const {
    return matrix(slot, tensors, boundary);
  }

  Layers<Model> layers_;
};

}  // namespace pdp::nn
