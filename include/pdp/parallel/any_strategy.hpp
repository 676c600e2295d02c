#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include <pdp/parallel/placed.hpp>

namespace pdp::parallel {

/// A strategy that is chosen when the program runs: AnyStrategy{Zero{.stage = 2}}. A step costs the same: only plans are made through it.
/// It may be one that divides layers, so a trainer is compiled for those, too.
class AnyStrategy {
 public:
  template <class S>
  requires(!std::same_as<S, AnyStrategy>) && Strategy<S> AnyStrategy(S strategy)
      : plan_{[held = strategy](const Outline& model, Place at) { return held.plan(model, at); }} {
    if constexpr (Divides<S>) part_ = [held = std::move(strategy)](Place at) { return held.part(at); };
  }

  [[nodiscard]] nn::Part part(Place at) const { return part_ ? part_(at) : nn::Part{}; }
  [[nodiscard]] Plan plan(const Outline& model, Place at) const { return plan_(model, at); }

 private:
  std::function<Plan(const Outline&, Place)> plan_;
  std::function<nn::Part(Place)> part_;  // where the strategy divides layers
};

static_assert(Divides<AnyStrategy>);

}  // namespace pdp::parallel
