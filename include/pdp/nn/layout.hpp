#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::nn {

/// A unit: consecutive layers, first to last - 1, with contiguous parameters and contiguous gradients. If several ranks share the unit, a
/// rank may keep only a slice of its parameters or of its gradients: one of `slices` equal ones. The whole is then in memory only while it
/// is needed, in buffer number `buffer`. Several units may use a buffer one after another.
struct Run {
  int first = 0;
  int last = 0;
  int slices = 1;
  int slice = 0;                                     // number of this rank's slice
  bool keeps_values = true, keeps_gradients = true;  // the whole, not only a slice
  int buffer = 0;
  bool has_gradients = true;  // false: no memory for gradients, as the rank only predicts or the unit is frozen
};

/// The sizes of the pieces of memory for values or for gradients, in elements.
struct Pieces {
  std::vector<Index> kept{};     // [unit]: the whole, or this rank's slice
  std::vector<Index> buffers{};  // [buffer]: the largest whole unit that uses it

  [[nodiscard]] constexpr Index elements() const {
    return std::accumulate(kept.begin(), kept.end(), std::accumulate(buffers.begin(), buffers.end(), Index{0}));
  }
};

/// The layout of a rank's units in memory, in elements.
struct Layout {
  struct Unit {
    Run run;
    Index slice = 0;  // elements of each slice

    [[nodiscard]] constexpr Index whole() const { return slice * run.slices; }
    /// Returns the offset of this rank's slice in the whole.
    [[nodiscard]] constexpr Index begin() const { return slice * run.slice; }
  };
  std::vector<Unit> units{};
  Pieces values{}, gradients{};

  /// Returns the elements of this rank's slices of all units, which an optimizer updates.
  [[nodiscard]] constexpr Index updated() const {
    Index elements = 0;
    for (const Unit& unit : units) elements += unit.slice;
    return elements;
  }
};

/// Raises element `number` of a list to `elements` if it is less. First extends a list that is too short with zeros.
void reserve_at_least(std::vector<Index>& list, std::size_t number, Index elements);

/// Returns the layout of the units `runs` of a model.
Layout layout(const Outline& model, const std::vector<Run>& runs);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/layout.hpp>
#endif
