#pragma once

/// Definitions for pdp/nn/layout.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::nn {

PDP_INLINE void reserve_at_least(std::vector<Index>& list, std::size_t number, Index elements) {
  if (list.size() <= number) list.resize(number + 1);
  list[number] = std::max(list[number], elements);
}

PDP_INLINE Layout layout(const Outline& model, const std::vector<Run>& runs) {
  Layout made;
  for (const Run& run : runs) {
    const Layout::Unit& unit =
        made.units.emplace_back(Layout::Unit{run, padded_parameter((model.elements(run.first, run.last) + run.slices - 1) / run.slices)});
    const auto add = [&unit](Pieces& to, bool keeps_whole) {
      to.kept.push_back(keeps_whole ? unit.whole() : unit.slice);
      if (!keeps_whole) reserve_at_least(to.buffers, as_size(unit.run.buffer), unit.whole());
    };
    add(made.values, run.keeps_values);
    if (run.has_gradients)
      add(made.gradients, run.keeps_gradients);
    else
      made.gradients.kept.push_back(0);
  }
  return made;
}

}  // namespace pdp::nn
