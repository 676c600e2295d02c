#pragma once

#include <span>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/random.hpp>
#include <pdp/nn/layers.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::nn {

/// What one micro-batch needs of a stage: where the tensors at each boundary lie, and what each layer saves. Null where a rank does not
/// need one.
template <class T>
struct Slot {
  Index rows = 0;
  std::vector<T*> activations;  // boundaries 0 .. layers
  std::vector<T*> gradients;
  std::vector<T*> saved;  // layers

  explicit Slot(int layers)
      : activations(static_cast<std::size_t>(layers) + 1),
        gradients(static_cast<std::size_t>(layers) + 1),
        saved(static_cast<std::size_t>(layers)) {}
};

/// The parameters that a rank holds, with their gradients, and the mathematics of its layers. All parameters lie in one piece and all
/// gradients in another, in runs of layers ("units") in the order in which they are given.
template <Block Model, class D, class T>
class Stage {
 public:
  /// `runs`: pairs of layers [first, last), for each unit. Parameters start from (seed, name, element), whatever the units are.
  Stage(const Model& model, const Shape& input, const std::vector<std::pair<int, int>>& runs, std::uint64_t seed, D device = {})
      : device_{device}, layers_{model}, outline_{nn::outline(model, input)}, offsets_(static_cast<std::size_t>(layers_.size()), -1) {
    Index elements = 0;
    for (const auto& [first, last] : runs) {
      units_.push_back({elements, 0});
      for (int layer = first; layer < last; ++layer) {
        offsets_[static_cast<std::size_t>(layer)] = elements;
        elements += outline_.layers[static_cast<std::size_t>(layer)].parameters;
      }
      units_.back().elements = elements - units_.back().offset;
    }
    values_ = Buffer<T>{elements};
    gradients_ = Buffer<T>{elements};
    initialize(seed);
  }

  [[nodiscard]] const Outline& outline() const { return outline_; }
  [[nodiscard]] const D& device() const { return device_; }
  [[nodiscard]] std::span<T> values() { return values_.span(); }
  [[nodiscard]] std::span<T> values(int unit) { return part(values_, unit); }
  [[nodiscard]] std::span<T> gradients(int unit) { return part(gradients_, unit); }
  /// Where a unit begins among all the elements that this rank holds.
  [[nodiscard]] Index offset(int unit) const { return units_[static_cast<std::size_t>(unit)].offset; }

  void forward(const Slot<T>& slot, int first, int last) {
    for (int number = first; number < last; ++number)
      layers_.visit(number, [&](const auto& layer) {
        layer.forward(device_, state(number, false), read(slot, slot.activations, number), matrix(slot, slot.activations, number + 1),
                      slot.saved[static_cast<std::size_t>(number)]);
      });
  }

  /// Does nothing where no parameter waits for the gradient.
  void backward_input(const Slot<T>& slot, int first, int last) {
    for (int number = last - 1; number >= first; --number) {
      if (!outline_.passes_gradient(number)) continue;
      layers_.visit(number, [&](const auto& layer) {
        layer.backward_input(device_, state(number, false), read(slot, slot.activations, number), read(slot, slot.activations, number + 1),
                             read(slot, slot.gradients, number + 1), matrix(slot, slot.gradients, number),
                             slot.saved[static_cast<std::size_t>(number)]);
      });
    }
  }

  void backward_weight(const Slot<T>& slot, int first, int last, bool accumulate) {
    for (int number = last - 1; number >= first; --number)
      layers_.visit(number, [&](const auto& layer) {
        layer.backward_weight(device_, state(number, accumulate), read(slot, slot.activations, number),
                              read(slot, slot.activations, number + 1), read(slot, slot.gradients, number + 1),
                              slot.saved[static_cast<std::size_t>(number)]);
      });
  }

  [[nodiscard]] Matrix<T> activation(const Slot<T>& slot, int boundary) const { return matrix(slot, slot.activations, boundary); }
  [[nodiscard]] Matrix<T> gradient(const Slot<T>& slot, int boundary) const { return matrix(slot, slot.gradients, boundary); }

  /// Calls visit(parameter, values) with each parameter that this rank holds, in the order of the model. The values are as they lie in
  /// memory.
  template <class Visit>
  void for_each_parameter(Visit&& visit) {
    for (int number = 0; number < layers_.size(); ++number) {
      const Index offset = offsets_[static_cast<std::size_t>(number)];
      if (offset < 0) continue;
      layers_.visit(number, [&](const auto& layer) {
        layer.parameters(layers_.path(number), offset, [&](const Parameter& parameter) {
          visit(parameter,
                values_.span().subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.elements())));
        });
      });
    }
  }

 private:
  struct Unit {
    Index offset;
    Index elements;
  };

  void initialize(std::uint64_t seed) {
    for_each_parameter([seed](const Parameter& parameter, std::span<T> values) {
      const double bound = parameter.initializer.bound(parameter.fan_in, parameter.fan_out);
      const random::Key key = random::make_key(seed, std::string_view{parameter.full_name()});
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Index element = parameter.file_element(static_cast<Index>(i));
        values[i] = static_cast<T>(bound) * (2 * random::uniform<T>(key, element) - 1);
      }
    });
  }

  [[nodiscard]] std::span<T> part(Buffer<T>& arena, int unit) {
    const Unit& u = units_[static_cast<std::size_t>(unit)];
    return arena.span().subspan(static_cast<std::size_t>(u.offset), static_cast<std::size_t>(u.elements));
  }
  [[nodiscard]] State<T> state(int layer, bool accumulate) {
    const Index offset = offsets_[static_cast<std::size_t>(layer)];
    return {values_.data() + offset, gradients_.data() + offset, accumulate};
  }
  [[nodiscard]] Matrix<T> matrix(const Slot<T>& slot, const std::vector<T*>& tensors, int boundary) const {
    return {tensors[static_cast<std::size_t>(boundary)], slot.rows, outline_.width(boundary)};
  }
  [[nodiscard]] Matrix<const T> read(const Slot<T>& slot, const std::vector<T*>& tensors, int boundary) const {
    return matrix(slot, tensors, boundary);
  }

  [[no_unique_address]] D device_;
  Layers<Model> layers_;
  Outline outline_;
  std::vector<Index> offsets_;  // of a layer's parameters; -1 where this rank does not hold them
  std::vector<Unit> units_;
  Buffer<T> values_, gradients_;
};

}  // namespace pdp::nn
