#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include <pdp/strategy/divides.hpp>
#include <pdp/strategy/strategy_ref.hpp>

namespace pdp::strategy {

/// A strategy that is chosen at run time: AnyStrategy{Zero{.stage = 2}}. A step costs the same as with the strategy itself, since
/// AnyStrategy only makes plans. The strategy may divide layers, so a trainer is compiled for that as well.
class AnyStrategy {
 public:
  template <class S>
  requires(!std::same_as<S, AnyStrategy>) && Strategy<S> AnyStrategy(S strategy)
      : plan_{[held = strategy](const Outline& model, RankInWorld at) { return StrategyRef{held}.plan(model, at); }} {
    if constexpr (Divides<S>) part_ = [held = std::move(strategy)](RankInWorld at) { return held.part(at); };
  }

  /// Returns a rank's part of the divided layers. Returns the only part if the strategy divides no layers.
  [[nodiscard]] nn::Part part(RankInWorld at) const { return part_ ? part_(at) : nn::Part{}; }
  [[nodiscard]] Plan plan(const Outline& model, RankInWorld at) const { return plan_(model, at); }

 private:
  std::function<Plan(const Outline&, RankInWorld)> plan_;
  std::function<nn::Part(RankInWorld)> part_;  // empty unless the strategy divides layers
};

static_assert(Divides<AnyStrategy>);

}  // namespace pdp::strategy
