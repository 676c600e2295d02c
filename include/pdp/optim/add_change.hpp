#pragma once

#include <pdp/optim/optimizer.hpp>

namespace pdp::optim {

/// The rule of buffers: adds the changes that the layers of all ranks have computed as the buffer's gradient.
struct AddChange {
  static constexpr bool ignores_clipping = true;

  template <class V>
  struct State {};

  template <class V>
  constexpr void update(V& w, const V& change, State<V>&, const StepInfo&) const {
    w = w + change;
  }
};
static_assert(Optimizer<AddChange>);

}  // namespace pdp::optim
