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

/// Elements of the pieces of memory for one kind of numbers, values or gradients.
struct Pieces {
  std::vector<Index> kept{};     // [unit]: the whole of it, or this rank's slice
  std::vector<Index> buffers{};  // [buffer]: room for the whole of units of which a slice is kept, as much as the largest needs

  [[nodiscard]] constexpr Index elements() const {
    return std::accumulate(kept.begin(), kept.end(), std::accumulate(buffers.begin(), buffers.end(), Index{0}));
  }
};

/// What a rank holds of its runs of layers ("units"), in elements.
struct Layout {
  struct Unit {
    Run run;
    Index slice = 0;  // of each slice: the whole has as many for each of them

    [[nodiscard]] constexpr Index whole() const { return slice * run.slices; }
    /// Where this rank's slice begins in the whole.
    [[nodiscard]] constexpr Index begin() const { return slice * run.slice; }
  };
  std::vector<Unit> units{};
  Pieces values{}, gradients{};

  /// Of this rank's slices of all units: what an optimizer updates.
  [[nodiscard]] constexpr Index updated() const {
    Index elements = 0;
    for (const Unit& unit : units) elements += unit.slice;
    return elements;
  }
};

/// Makes room for `elements` in a list that may be too short.
void reserve_at_least(std::vector<Index>& list, std::size_t number, Index elements);

Layout layout(const Outline& model, const std::vector<Run>& runs);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/layout.hpp>
#endif
