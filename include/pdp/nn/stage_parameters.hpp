#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/initializer.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/parameter_memory.hpp>

namespace pdp::nn {

/// A parameter of a model, and the number of its layer. The parameter's offset counts from the start of that layer.
struct LayerParameter {
  Parameter parameter;
  int layer = 0;
};

/// The elements of a parameter that lie in a rank's slice of a unit. Borrows the parameter.
struct SlicePart {
  const Parameter* parameter = nullptr;
  int unit = 0;
  Index first = 0;  // number of the first one in the parameter
  Index at = 0;     // and in the slice
  Index elements = 0;
};

namespace detail {

/// Adds the parameter of a layer. `is_tied`: it is a copy of the first one, if there is one.
void append(std::vector<LayerParameter>& all, const Parameter& parameter, int layer, bool is_tied);

struct AppendParameters {
  /// Not a lambda, so that the parameters() of a layer inside several blocks is compiled once.
  struct OfLayer {
    std::vector<LayerParameter>& all;
    int layer;
    bool is_tied;

    void operator()(const Parameter& parameter) const { append(all, parameter, layer, is_tied); }
  };
  std::vector<LayerParameter> all{};
  int number = 0;

  template <class L>
  void operator()(const L& layer, const Path& path) {
    const OfLayer visit{all, number++, is_tied<L>};
    layer.parameters(path, 0, visit);
  }
};

}  // namespace detail

/// Returns the parameters of a model, in the order of its layers, including the copy in a tied layer. `at`: the path of the model, if it is
/// a part of a larger one.
template <Block Model>
std::vector<LayerParameter> parameters_of(const Model& model, const Path& at = {}) {
  detail::AppendParameters parameters;
  for_each_leaf(model, at, parameters);
  return std::move(parameters.all);
}

/// The parameters of a model that a rank holds, with their gradients, independent of the layers' types. The parameters that the rank keeps
/// are contiguous in device memory, and so are the gradients, except in lent memory. Both are divided into units (see Run), in the given
/// order.
///
/// If T has 16 bits, gradients are floats, and this rank's slice of each unit has *masters*: the parameters in float, which an optimizer
/// updates. The values are their rounded copies. Micikevicius et al., "Mixed precision training", ICLR 2018.
template <class D, class T>
class StageParameters {
 public:
  using Element = T;
  using Gradient = Accumulated<T>;
  using Master = Accumulated<T>;
  using Device = D;
  static constexpr bool has_masters = ParameterMemory<D, T>::has_masters;

  /// Initial values depend on (seed, name of the parameter, element), not on the units.
  StageParameters(Outline outline, std::vector<LayerParameter> parameters, const std::vector<Run>& runs, std::uint64_t seed, D device,
                  const Lent<T>& lent);
  StageParameters(StageParameters&&) noexcept;
  StageParameters& operator=(StageParameters&&) noexcept;
  ~StageParameters();

  [[nodiscard]] const Outline& outline() const { return outline_; }
  [[nodiscard]] const D& device() const { return device_; }
  /// Returns whether this rank keeps all its units whole, and not slices of some.
  [[nodiscard]] bool keeps_whole_units() const;

  /// Returns all values that this rank keeps, except in lent memory.
  [[nodiscard]] std::span<T> values() { return memory_.values(); }
  /// Returns the values of a whole unit. If this rank keeps only a slice of them, returns the buffer with its current contents.
  [[nodiscard]] std::span<T> values(int unit) { return {memory_[unit].values, as_size(memory_[unit].layout.whole())}; }
  /// Of a unit that has gradients (see Run), as for own_gradients().
  [[nodiscard]] std::span<Gradient> gradients(int unit) { return {memory_[unit].gradients, as_size(memory_[unit].layout.whole())}; }
  /// From now on, the gradients of a unit are in `memory`, which must be as large as gradients(unit). For units that this rank keeps whole.
  void keep_gradients_in(int unit, std::span<Gradient> memory) { memory_.keep_gradients_in(unit, memory.data()); }
  /// Returns this rank's slice of a unit.
  [[nodiscard]] std::span<T> own_values(int unit) { return {memory_[unit].own_values, as_size(memory_[unit].layout.slice)}; }
  [[nodiscard]] std::span<Gradient> own_gradients(int unit) { return {memory_[unit].own_gradients, as_size(memory_[unit].layout.slice)}; }
  /// Returns what an optimizer updates: the masters, or own_values() if there are none.
  [[nodiscard]] std::span<Master> own_masters(int unit) {
    if constexpr (has_masters)
      return {memory_[unit].own_masters, as_size(memory_[unit].layout.slice)};
    else
      return own_values(unit);
  }

  /// Returns the parameters of the whole model, in its order, including those of other ranks.
  [[nodiscard]] const std::vector<LayerParameter>& of_model() const { return parameters_; }

  /// Calls visit(parameter, values) for each parameter that this rank holds, in the order of the model. It visits the copy of a tied layer,
  /// too, with the same name (Parameter::is_copy). So do the functions below. The values are laid out as in memory. If the rank keeps only
  /// a slice, they are valid while the buffer holds the whole unit.
  template <class Visit>
  void for_each_parameter(Visit&& visit) {
    visit_held([&](const Parameter& parameter, const Unit& unit) {
      visit(parameter, std::span<T>{unit.values + parameter.offset, as_size(parameter.elements())});
    });
  }
  /// Calls visit(parameter, masters) in the same way, for units with all masters on this rank. If there are no masters, visits the values
  /// of the units that this rank keeps whole.
  template <class Visit>
  void for_each_master(Visit&& visit) {
    visit_held([&](const Parameter& parameter, const Unit& unit) {
      const auto size = as_size(parameter.elements());
      if constexpr (has_masters) {
        if (unit.run().slices == 1) visit(parameter, std::span<Master>{unit.own_masters + parameter.offset, size});
      } else {
        if (unit.run().keeps_values) visit(parameter, std::span<Master>{unit.values + parameter.offset, size});
      }
    });
  }
  /// Calls visit(parameter, first, values) with the part of each parameter that this rank keeps: the parameter's elements from `first` on.
  /// Visits the values and, if there are any, the masters.
  template <class Visit>
  void for_each_kept(Visit&& visit) {
    visit_held([&](const Parameter& parameter, const Unit& unit) {
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
  /// Returns the parts of parameters in this rank's slices, in the order of the model.
  [[nodiscard]] std::vector<SlicePart> slice_parts() const {
    std::vector<SlicePart> parts;
    for (const LayerParameter& each : parameters_) {
      const Place place = places_[as_size(each.layer)];
      if (place.unit < 0) continue;
      const Layout::Unit& layout = memory_[place.unit].layout;
      const Index offset = place.offset + each.parameter.offset;  // in the unit
      const Index first = std::max(offset, layout.begin()),
                  last = std::min(offset + each.parameter.elements(), layout.begin() + layout.slice);
      if (first < last) parts.push_back({&each.parameter, place.unit, first - offset, first - layout.begin(), last - first});
    }
    return parts;
  }
  /// Calls visit(parameter, layer, gradient, own) for each parameter of a unit, the last layer first. `gradient` is the whole gradient,
  /// valid while the whole unit is in memory; `own` is the part of it in this rank's slice. Visits nothing if the unit has no gradients.
  template <class Visit>
  void for_each_gradient(int number, Visit&& visit) {
    const Unit& unit = memory_[number];
    if (!unit.run().has_gradients) return;
    const Index begin = unit.layout.begin(), end = begin + unit.layout.slice;
    for (int layer = unit.run().last - 1; layer >= unit.run().first; --layer) {
      for (const LayerParameter& each : std::ranges::equal_range(parameters_, layer, {}, &LayerParameter::layer)) {
        const Index offset = places_[as_size(layer)].offset + each.parameter.offset, size = each.parameter.elements();
        const Index first = std::max(offset, begin), last = std::min(offset + size, end);
        visit(each.parameter, layer, std::span<Gradient>{unit.gradients + offset, as_size(size)},
              first < last ? std::span{unit.own_gradients + (first - begin), as_size(last - first)} : std::span<Gradient>{});
      }
    }
  }

 protected:
  /// Returns the current pointers to the parameters of a layer; null if this rank does not hold them, or has no gradients.
  [[nodiscard]] State<T> state(int layer, bool accumulate) const {
    const Place place = places_[as_size(layer)];
    if (place.unit < 0) return {nullptr, nullptr, accumulate, {}};
    const Unit& unit = memory_[place.unit];
    return {unit.values + place.offset, unit.run().has_gradients ? unit.gradients + place.offset : nullptr, accumulate, {}};
  }

 private:
  using Unit = typename ParameterMemory<D, T>::Unit;
  /// The position of a layer's parameters. `unit` is -1 if this rank does not hold them.
  struct Place {
    int unit = -1;
    Index offset = 0;
  };

  /// Calls visit(parameter, unit) for each parameter that this rank holds. The parameter's offset counts from the start of the unit.
  template <class Visit>
  void visit_held(Visit&& visit) {
    for (const LayerParameter& each : parameters_) {
      const Place place = places_[as_size(each.layer)];
      if (place.unit < 0) continue;
      Parameter parameter = each.parameter;
      parameter.offset += place.offset;
      visit(parameter, memory_[place.unit]);
    }
  }

  [[no_unique_address]] D device_;
  Outline outline_;
  std::vector<LayerParameter> parameters_;
  ParameterMemory<D, T> memory_;
  std::vector<Place> places_;  // of layers
};

template <class D, class T>
StageParameters<D, T>::StageParameters(StageParameters&&) noexcept = default;
template <class D, class T>
StageParameters<D, T>& StageParameters<D, T>::operator=(StageParameters&&) noexcept = default;
template <class D, class T>
StageParameters<D, T>::~StageParameters() = default;

template <class D, class T>
StageParameters<D, T>::StageParameters(Outline outline, std::vector<LayerParameter> parameters, const std::vector<Run>& runs,
                                       std::uint64_t seed, D device, const Lent<T>& lent)
    : device_{device},
      outline_{std::move(outline)},
      parameters_{std::move(parameters)},
      memory_{device, layout(outline_, runs), lent},
      places_(as_size(outline_.size())) {
  for (std::size_t u = 0; u < runs.size(); ++u)
    for (int layer = runs[u].first; layer < runs[u].last; ++layer)
      places_[as_size(layer)] = {as_int(u), outline_.elements(runs[u].first, layer)};
  for_each_kept([&]<class E>(const Parameter& parameter, Index first, std::span<E> values) {
    const random::Key key = random::make_key(seed, std::string_view{parameter.full_name()});
    const Initializer& initializer = parameter.initializer;
    if (initializer.kind == Initializer::Kind::uniform)
      return fill_uniform(device_, key, initializer.scale(parameter.fan_in, parameter.fan_out), parameter.file_numbers(first), values);
    const std::vector<double> wanted = parameter.initial_values(key, first, as_index(values.size()));
    std::vector<E> rounded(wanted.size());
    std::ranges::transform(wanted, rounded.begin(), [](double value) {
      if constexpr (std::same_as<E, double>)
        return value;
      else if constexpr (std::same_as<E, float>)
        return static_cast<float>(value);
      else
        return E{static_cast<float>(value)};
    });
    upload(device_, std::span<const E>{rounded}, values.data());
  });
}

template <class D, class T>
bool StageParameters<D, T>::keeps_whole_units() const {
  return std::ranges::all_of(memory_.units(),
                             [](const Unit& unit) { return has_masters ? unit.run().slices == 1 : unit.run().keeps_values; });
}

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/stage_parameters.hpp>
#endif
