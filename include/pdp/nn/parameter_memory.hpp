#pragma once

#include <concepts>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/nn/layout.hpp>

namespace pdp::nn {

/// Device memory of the caller, for parameters and gradients. It must be zero, and aligned like a Buffer. `values` and `gradients` have a
/// span for each unit, as large as the part that this rank keeps. The other two have a span for each buffer, as large as its largest unit.
/// If a span is empty, or its list too short to have one, the rank allocates that memory itself.
template <class T>
struct Lent {
  std::vector<std::span<T>> values{};
  std::vector<std::span<Accumulated<T>>> gradients{};
  std::vector<std::span<T>> value_buffers{};
  std::vector<std::span<Accumulated<T>>> gradient_buffers{};
};

/// Memory for the values, or for the gradients, of a rank's units. The parts that the rank keeps are contiguous, in the order of the units.
/// Only units in lent memory lie elsewhere.
template <class D, class E>
class UnitArena {
 public:
  /// The addresses of a whole unit and of this rank's slice.
  struct Place {
    E *whole = nullptr, *own = nullptr;
  };
  using Spans = std::vector<std::span<E>>;

  UnitArena() = default;
  /// `keeps_whole` is the member of Run that says whether the whole unit is kept.
  UnitArena(const D& device, const std::vector<Layout::Unit>& units, const Pieces& pieces, bool Run::*keeps_whole, const Spans& lent,
            const Spans& lent_buffers);

  [[nodiscard]] const Place& operator[](std::size_t unit) const { return places_[unit]; }
  /// Returns the parts of all units that the rank keeps, except those in lent memory.
  [[nodiscard]] std::span<E> kept() { return kept_.span(); }

 private:
  /// Returns span `number` of a list, or an empty one if the list is too short.
  static std::span<E> piece(const Spans& lent, std::size_t number) { return number < lent.size() ? lent[number] : std::span<E>{}; }

  DeviceMemory<D, E> kept_;
  std::vector<DeviceMemory<D, E>> buffers_;
  std::vector<Place> places_;  // of units
};

template <class D, class E>
UnitArena<D, E>::UnitArena(const D& device, const std::vector<Layout::Unit>& units, const Pieces& pieces, bool Run::*keeps_whole,
                           const Spans& lent, const Spans& lent_buffers) {
  Index elements = 0;
  for (std::size_t u = 0; u < units.size(); ++u)
    if (piece(lent, u).empty()) elements += pieces.kept[u];
  kept_ = allocate<E>(device, elements);
  for (std::size_t number = 0; number < pieces.buffers.size(); ++number)
    buffers_.push_back(allocate<E>(device, piece(lent_buffers, number).empty() ? pieces.buffers[number] : 0));
  E* next = kept_.data();
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Layout::Unit& unit = units[u];
    E* const kept = piece(lent, u).empty() ? std::exchange(next, next + pieces.kept[u]) : lent[u].data();
    const auto buffer = as_size(unit.run.buffer);
    if (unit.run.*keeps_whole)
      places_.push_back({kept, pieces.kept[u] == 0 ? kept : kept + unit.begin()});
    else if (buffer >= buffers_.size())
      places_.push_back({});  // the unit has no memory here, and no other unit uses its buffer
    else
      places_.push_back({piece(lent_buffers, buffer).empty() ? buffers_[buffer].data() : lent_buffers[buffer].data(), kept});
  }
}

/// The memory of the parameters that a rank holds, of their gradients and, if T has 16 bits, of their masters.
template <class D, class T>
class ParameterMemory {
 public:
  using Gradient = Accumulated<T>;
  using Master = Accumulated<T>;
  static constexpr bool has_masters = !std::same_as<T, Master>;
  struct Unit {
    Layout::Unit layout;
    T *values = nullptr, *own_values = nullptr;  // of the whole, of this rank's slice
    Gradient *gradients = nullptr, *own_gradients = nullptr;
    Master* own_masters = nullptr;

    [[nodiscard]] const Run& run() const { return layout.run; }
  };

  ParameterMemory(const D& device, const Layout& layout, const Lent<T>& lent);

  [[nodiscard]] const std::vector<Unit>& units() const { return units_; }
  [[nodiscard]] const Unit& operator[](int unit) const { return units_[as_size(unit)]; }
  /// Returns all values that this rank keeps, except in lent memory.
  [[nodiscard]] std::span<T> values() { return values_.kept(); }
  void keep_gradients_in(int unit, Gradient* memory) {
    Unit& moved = units_[as_size(unit)];
    moved.gradients = memory;
    moved.own_gradients = memory + moved.layout.begin();
  }

 private:
  UnitArena<D, T> values_;
  UnitArena<D, Gradient> gradients_;
  DeviceMemory<D, Master> masters_;
  std::vector<Unit> units_;
};

template <class D, class T>
ParameterMemory<D, T>::ParameterMemory(const D& device, const Layout& layout, const Lent<T>& lent)
    : values_{device, layout.units, layout.values, &Run::keeps_values, lent.values, lent.value_buffers},
      gradients_{device, layout.units, layout.gradients, &Run::keeps_gradients, lent.gradients, lent.gradient_buffers} {
  if constexpr (has_masters) masters_ = allocate<Master>(device, layout.updated());
  Master* next = has_masters ? masters_.data() : nullptr;
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    units_.push_back({layout.units[u], values_[u].whole, values_[u].own, gradients_[u].whole, gradients_[u].own, next});
    if constexpr (has_masters) next += layout.units[u].slice;
  }
}

}  // namespace pdp::nn
