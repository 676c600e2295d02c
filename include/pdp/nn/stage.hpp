#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/nn/layers.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter_memory.hpp>

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

/// The parameters that a rank holds, with their gradients, and the mathematics of its layers. All parameters that it keeps lie in one
/// piece of the device's memory and all gradients in another, in runs of layers ("units") in the order in which they are given, but for
/// what lies in memory that it was lent.
///
/// Where T is of 16 bits, gradients are floats, and this rank's slice of each unit has *masters*: the parameters in float, which an
/// optimizer updates, and of which the values are what they are rounded to. Micikevicius et al., "Mixed precision training", ICLR 2018.
template <Block Model, class D, class T>
class Stage {
 public:
  using Element = T;
  using Gradient = Accumulated<T>;
  using Master = Accumulated<T>;
  using Device = D;
  static constexpr bool has_masters = ParameterMemory<D, T>::has_masters;

  /// Parameters start from (seed, name, element), whatever the units are.
  Stage(const Model& model, const Shape& input, const std::vector<Run>& runs, std::uint64_t seed, D device = {}, const Lent<T>& lent = {})
      : device_{device},
        layers_{model},
        outline_{nn::outline(model, input)},
        memory_{device, layout(outline_, runs), lent},
        places_(as_size(layers_.size())) {
    for (std::size_t u = 0; u < runs.size(); ++u)
      for (int layer = runs[u].first; layer < runs[u].last; ++layer)
        places_[as_size(layer)] = {as_int(u), outline_.elements(runs[u].first, layer)};
    initialize(seed);
  }

  [[nodiscard]] const Outline& outline() const { return outline_; }
  [[nodiscard]] const D& device() const { return device_; }
  /// Whether this rank keeps the whole of all its units, and not slices of some.
  [[nodiscard]] bool keeps_whole_units() const {
    return std::ranges::all_of(memory_.units(),
                               [](const Unit& unit) { return has_masters ? unit.run().slices == 1 : unit.run().keeps_values; });
  }
  /// All that this rank keeps, but for what lies in memory that it was lent.
  [[nodiscard]] std::span<T> values() { return memory_.values(); }
  /// The whole of a unit; where this rank keeps a slice only, what lies in its buffer at present.
  [[nodiscard]] std::span<T> values(int unit) { return {memory_[unit].values, as_size(memory_[unit].layout.whole())}; }
  [[nodiscard]] std::span<Gradient> gradients(int unit) { return {memory_[unit].gradients, as_size(memory_[unit].layout.whole())}; }
  /// This rank's slice of a unit.
  [[nodiscard]] std::span<T> own_values(int unit) { return {memory_[unit].own_values, as_size(memory_[unit].layout.slice)}; }
  [[nodiscard]] std::span<Gradient> own_gradients(int unit) { return {memory_[unit].own_gradients, as_size(memory_[unit].layout.slice)}; }
  /// What an optimizer updates: the same as own_values() where these are not rounded.
  [[nodiscard]] std::span<Master> own_masters(int unit) {
    if constexpr (has_masters)
      return {memory_[unit].own_masters, as_size(memory_[unit].layout.slice)};
    else
      return own_values(unit);
  }

  void forward(const Slot<T>& slot, int first, int last) {
    for (int number = first; number < last; ++number)
      layers_.visit(number, [&](const auto& layer) {
        layer.forward(device_, state(number, false), read(slot, slot.activations, number), matrix(slot, slot.activations, number + 1),
                      slot.saved[as_size(number)]);
      });
  }

  /// Does nothing where no parameter waits for the gradient.
  void backward_input(const Slot<T>& slot, int first, int last) {
    for (int number = last - 1; number >= first; --number) {
      if (!outline_.passes_gradient(number)) continue;
      layers_.visit(number, [&](const auto& layer) {
        layer.backward_input(device_, state(number, false), read(slot, slot.activations, number), read(slot, slot.activations, number + 1),
                             read(slot, slot.gradients, number + 1), matrix(slot, slot.gradients, number), slot.saved[as_size(number)]);
      });
    }
  }

  void backward_weight(const Slot<T>& slot, int first, int last, bool accumulate) {
    for (int number = last - 1; number >= first; --number)
      layers_.visit(number, [&](const auto& layer) {
        layer.backward_weight(device_, state(number, accumulate), read(slot, slot.activations, number),
                              read(slot, slot.activations, number + 1), read(slot, slot.gradients, number + 1),
                              slot.saved[as_size(number)]);
      });
  }

  [[nodiscard]] Matrix<T> activation(const Slot<T>& slot, int boundary) const { return matrix(slot, slot.activations, boundary); }
  [[nodiscard]] Matrix<T> gradient(const Slot<T>& slot, int boundary) const { return matrix(slot, slot.gradients, boundary); }

  /// Calls visit(parameter, values) with each parameter that this rank holds, in the order of the model. The values are as they lie in
  /// memory: those of a slice are there while the whole of its unit is.
  template <class Visit>
  void for_each_parameter(Visit&& visit) {
    visit_parameters([&](const Parameter& parameter, const Unit& unit) {
      visit(parameter, std::span<T>{unit.values + parameter.offset, as_size(parameter.elements())});
    });
  }
  /// The same with what an optimizer updates, of units of which this rank keeps the whole of that.
  template <class Visit>
  void for_each_master(Visit&& visit) {
    visit_parameters([&](const Parameter& parameter, const Unit& unit) {
      const auto size = as_size(parameter.elements());
      if constexpr (has_masters) {
        if (unit.run().slices == 1) visit(parameter, std::span<Master>{unit.own_masters + parameter.offset, size});
      } else {
        if (unit.run().keeps_values) visit(parameter, std::span<Master>{unit.values + parameter.offset, size});
      }
    });
  }
  /// Calls visit(parameter, first, values) with what this rank keeps of each parameter: its elements from `first` on; values, and where
  /// there are masters, these.
  template <class Visit>
  void for_each_kept(Visit&& visit) {
    visit_parameters([&](const Parameter& parameter, const Unit& unit) {
      const auto visit_in = [&](auto* values, Index begin, Index end) {
        const Index first = std::max(parameter.offset, begin), last = std::min(parameter.offset + parameter.elements(), end);
        if (first < last) visit(parameter, first - parameter.offset, std::span{values + (first - begin), as_size(last - first)});
      };
      const Index begin = unit.layout.begin(), end = begin + unit.layout.slice;
      if (unit.run().keeps_values)
        visit_in(unit.values, 0, unit.layout.whole());
      else
        visit_in(unit.own_values, begin, end);
      if constexpr (has_masters) visit_in(unit.own_masters, begin, end);
    });
  }
  /// Calls visit(parameter, layer, gradient, own) with each parameter of a unit, in the order of backward. `gradient` is all of it, there
  /// while the whole of the unit is; `own` what lies in this rank's slice.
  template <class Visit>
  void for_each_gradient(int number, Visit&& visit) {
    const Unit& unit = memory_[number];
    const Index begin = unit.layout.begin(), end = begin + unit.layout.slice;
    for (int layer = unit.run().last - 1; layer >= unit.run().first; --layer)
      layers_.visit(layer, [&](const auto& each) {
        each.parameters(layers_.path(layer), places_[as_size(layer)].offset, [&](const Parameter& parameter) {
          const Index first = std::max(parameter.offset, begin), last = std::min(parameter.offset + parameter.elements(), end);
          const std::span<Gradient> whole{unit.gradients + parameter.offset, as_size(parameter.elements())};
          visit(parameter, layer, whole,
                first < last ? std::span{unit.own_gradients + (first - begin), as_size(last - first)} : std::span<Gradient>{});
        });
      });
  }
  /// Calls visit(parameter, layer) with each parameter of the model, whoever holds it. Its offset is among those of its layer.
  template <class Visit>
  void for_each_parameter_of_model(Visit&& visit) const {
    for (int number = 0; number < layers_.size(); ++number)
      layers_.visit(number, [&](const auto& layer) {
        layer.parameters(layers_.path(number), 0, [&](const Parameter& parameter) { visit(parameter, number); });
      });
  }

 private:
  using Unit = typename ParameterMemory<D, T>::Unit;
  /// Where the parameters of a layer are: in no unit where this rank does not hold them.
  struct Place {
    int unit = -1;
    Index offset = 0;
  };

  /// Calls visit(parameter, unit), where the parameter's offset is among the elements of the unit.
  template <class Visit>
  void visit_parameters(Visit&& visit) {
    for (int number = 0; number < layers_.size(); ++number) {
      const Place place = places_[as_size(number)];
      if (place.unit < 0) continue;
      layers_.visit(number, [&](const auto& layer) {
        layer.parameters(layers_.path(number), place.offset, [&](const Parameter& parameter) { visit(parameter, memory_[place.unit]); });
      });
    }
  }

  void initialize(std::uint64_t seed) {
    for_each_kept([&]<class E>(const Parameter& parameter, Index first, std::span<E> values) {
      const random::Key key = random::make_key(seed, std::string_view{parameter.full_name()});
      fill_uniform(device_, key, parameter.initializer.bound(parameter.fan_in, parameter.fan_out), parameter.file_numbers(first), values);
    });
  }

  [[nodiscard]] State<T> state(int layer, bool accumulate) {
    const Place place = places_[as_size(layer)];
    if (place.unit < 0) return {nullptr, nullptr, accumulate};
    const Unit& unit = memory_[place.unit];
    return {unit.values + place.offset, unit.gradients + place.offset, accumulate};
  }
  [[nodiscard]] Matrix<T> matrix(const Slot<T>& slot, const std::vector<T*>& tensors, int boundary) const {
    return {tensors[as_size(boundary)], slot.rows, outline_.width(boundary)};
  }
  [[nodiscard]] Matrix<const T> read(const Slot<T>& slot, const std::vector<T*>& tensors, int boundary) const {
    return matrix(slot, tensors, boundary);
  }

  [[no_unique_address]] D device_;
  Layers<Model> layers_;
  Outline outline_;
  ParameterMemory<D, T> memory_;
  std::vector<Place> places_;  // of layers
};

}  // namespace pdp::nn
