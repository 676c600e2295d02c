#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
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

  explicit Slot(int layers) : activations(as_size(layers) + 1), gradients(as_size(layers) + 1), saved(as_size(layers)) {}
};

/// A run of layers whose parameters lie in one piece, and so do their gradients. Of a run that several ranks share, a rank may keep a slice
/// of each only, of which there are `slices` of the same length, and has room for the whole while it is needed: in the buffer with that
/// number, which several runs may use in turn.
struct Run {
  int first = 0;
  int last = 0;
  int slices = 1;
  int slice = 0;                                     // this rank's own
  bool keeps_values = true, keeps_gradients = true;  // the whole of them
  int buffer = 0;
};

/// Memory of the device that somebody else keeps: zero, and aligned as a Buffer. For each run what this rank keeps of its parameters, and
/// of their gradients, and for each buffer as much as the largest of its runs needs. Empty where there is none; each list may end early.
template <class T>
struct Lent {
  std::vector<std::span<T>> values{};
  std::vector<std::span<Accumulated<T>>> gradients{};
  std::vector<std::span<T>> value_buffers{};
  std::vector<std::span<Accumulated<T>>> gradient_buffers{};
};

/// How many elements each slice of a run has. The whole has as many for each of its slices.
constexpr Index slice_elements(const Outline& model, const Run& run) {
  return padded_parameter((model.elements(run.first, run.last) + run.slices - 1) / run.slices);
}

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
  static constexpr bool has_masters = !std::same_as<T, Master>;

  /// Parameters start from (seed, name, element), whatever the units are.
  Stage(const Model& model, const Shape& input, const std::vector<Run>& runs, std::uint64_t seed, D device = {}, const Lent<T>& lent = {})
      : device_{device}, layers_{model}, outline_{nn::outline(model, input)}, places_(as_size(layers_.size())) {
    units_.reserve(runs.size());
    for (const Run& run : runs) add(run);
    make_memory(lent);
    initialize(seed);
  }

  [[nodiscard]] const Outline& outline() const { return outline_; }
  [[nodiscard]] const D& device() const { return device_; }
  /// Whether this rank keeps the whole of all its units, and not slices of some.
  [[nodiscard]] bool keeps_whole_units() const {
    return std::ranges::all_of(units_, [](const Unit& unit) { return has_masters ? unit.run.slices == 1 : unit.run.keeps_values; });
  }
  /// All that this rank keeps, but for what lies in memory that it was lent.
  [[nodiscard]] std::span<T> values() { return values_.span(); }
  /// The whole of a unit; where this rank keeps a slice only, what lies in its buffer at present.
  [[nodiscard]] std::span<T> values(int unit) { return {at(unit).values, at(unit).size()}; }
  [[nodiscard]] std::span<Gradient> gradients(int unit) { return {at(unit).gradients, at(unit).size()}; }
  /// This rank's slice of a unit.
  [[nodiscard]] std::span<T> own_values(int unit) { return {at(unit).own_values, at(unit).slice_size()}; }
  [[nodiscard]] std::span<Gradient> own_gradients(int unit) { return {at(unit).own_gradients, at(unit).slice_size()}; }
  /// What an optimizer updates: the same as own_values() where these are not rounded.
  [[nodiscard]] std::span<Master> own_masters(int unit) {
    if constexpr (has_masters)
      return {at(unit).own_masters, at(unit).slice_size()};
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
        if (unit.run.slices == 1) visit(parameter, std::span<Master>{unit.own_masters + parameter.offset, size});
      } else {
        if (unit.run.keeps_values) visit(parameter, std::span<Master>{unit.values + parameter.offset, size});
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
      const Index begin = unit.run.slice * unit.slice_elements, end = begin + unit.slice_elements;
      if (unit.run.keeps_values)
        visit_in(unit.values, 0, unit.run.slices * unit.slice_elements);
      else
        visit_in(unit.own_values, begin, end);
      if constexpr (has_masters) visit_in(unit.own_masters, begin, end);
    });
  }
  /// Calls visit(parameter, layer, gradient, own) with each parameter of a unit, in the order of backward. `gradient` is all of it, there
  /// while the whole of the unit is; `own` what lies in this rank's slice.
  template <class Visit>
  void for_each_gradient(int number, Visit&& visit) {
    const Unit& unit = at(number);
    const Index begin = unit.run.slice * unit.slice_elements, end = begin + unit.slice_elements;
    for (int layer = unit.run.last - 1; layer >= unit.run.first; --layer)
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
  struct Unit {
    Run run;
    Index slice_elements = 0;
    T *values = nullptr, *own_values = nullptr;  // of the whole, of this rank's slice
    Gradient *gradients = nullptr, *own_gradients = nullptr;
    Master* own_masters = nullptr;

    [[nodiscard]] std::size_t slice_size() const { return as_size(slice_elements); }
    [[nodiscard]] std::size_t size() const { return slice_size() * as_size(run.slices); }
  };
  /// Where the parameters of a layer are: in no unit where this rank does not hold them.
  struct Place {
    int unit = -1;
    Index offset = 0;
  };

  [[nodiscard]] Unit& at(int unit) { return units_[as_size(unit)]; }

  void add(const Run& run) {
    for (int layer = run.first; layer < run.last; ++layer)
      places_[as_size(layer)] = {as_int(units_.size()), outline_.elements(run.first, layer)};
    units_.push_back({run, slice_elements(outline_, run)});
  }

  void make_memory(const Lent<T>& lent) {
    const auto kept = [](const Unit& unit, bool whole) { return whole ? as_index(unit.size()) : unit.slice_elements; };
    Index values = 0, gradients = 0, masters = 0;
    std::vector<Index> value_buffers, gradient_buffers;  // their elements
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const Unit& unit = units_[u];
      const auto need = [&](const auto& lent_units, bool keeps, Index& own, std::vector<Index>& buffers) {
        if (piece(lent_units, u).empty()) own += kept(unit, keeps);
        if (keeps) return;
        const auto number = as_size(unit.run.buffer);
        if (buffers.size() <= number) buffers.resize(number + 1);
        buffers[number] = std::max(buffers[number], as_index(unit.size()));
      };
      need(lent.values, unit.run.keeps_values, values, value_buffers);
      need(lent.gradients, unit.run.keeps_gradients, gradients, gradient_buffers);
      masters += unit.slice_elements;
    }
    values_ = allocate<T>(device_, values);
    gradients_ = allocate<Gradient>(device_, gradients);
    if constexpr (has_masters) masters_ = allocate<Master>(device_, masters);
    const std::vector<T*> values_of_buffers = make_buffers(value_buffers, lent.value_buffers, value_buffers_);
    const std::vector<Gradient*> gradients_of_buffers = make_buffers(gradient_buffers, lent.gradient_buffers, gradient_buffers_);
    T* next_values = values_.data();
    Gradient* next_gradients = gradients_.data();
    Master* next_masters = has_masters ? masters_.data() : nullptr;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      Unit& unit = units_[u];
      const auto place = [&]<class E>(std::span<E> from_others, bool keeps, E*& next, const std::vector<E*>& buffers, E*& whole, E*& own) {
        E* lent_place = from_others.data();
        E*& from = from_others.empty() ? next : lent_place;
        whole = keeps ? from : buffers[as_size(unit.run.buffer)];
        own = keeps ? from + unit.run.slice * unit.slice_elements : from;
        from += kept(unit, keeps);
      };
      place(piece(lent.values, u), unit.run.keeps_values, next_values, values_of_buffers, unit.values, unit.own_values);
      place(piece(lent.gradients, u), unit.run.keeps_gradients, next_gradients, gradients_of_buffers, unit.gradients, unit.own_gradients);
      if constexpr (has_masters) unit.own_masters = std::exchange(next_masters, next_masters + unit.slice_elements);
    }
  }
  /// Where buffers of so many elements are: those that this rank was not lent are its own.
  template <class E, class Memory>
  std::vector<E*> make_buffers(const std::vector<Index>& elements, const std::vector<std::span<E>>& lent, std::vector<Memory>& own) {
    std::vector<E*> places;
    for (std::size_t number = 0; number < elements.size(); ++number) {
      const std::span<E> from_others = piece(lent, number);
      own.push_back(allocate<E>(device_, from_others.empty() ? elements[number] : 0));
      places.push_back(from_others.empty() ? own.back().data() : from_others.data());
    }
    return places;
  }
  /// Of a list that may end early.
  template <class E>
  static std::span<E> piece(const std::vector<std::span<E>>& lent, std::size_t number) {
    return number < lent.size() ? lent[number] : std::span<E>{};
  }

  /// Calls visit(parameter, unit), where the parameter's offset is among the elements of the unit.
  template <class Visit>
  void visit_parameters(Visit&& visit) {
    for (int number = 0; number < layers_.size(); ++number) {
      const Place place = places_[as_size(number)];
      if (place.unit < 0) continue;
      layers_.visit(number, [&](const auto& layer) {
        layer.parameters(layers_.path(number), place.offset, [&](const Parameter& parameter) { visit(parameter, at(place.unit)); });
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
    return {at(place.unit).values + place.offset, at(place.unit).gradients + place.offset, accumulate};
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
  std::vector<Place> places_;  // of layers
  std::vector<Unit> units_;
  DeviceMemory<D, T> values_;
  DeviceMemory<D, Gradient> gradients_;
  DeviceMemory<D, Master> masters_;
  std::vector<DeviceMemory<D, T>> value_buffers_;  // of units of which a slice is kept
  std::vector<DeviceMemory<D, Gradient>> gradient_buffers_;
};

}  // namespace pdp::nn
