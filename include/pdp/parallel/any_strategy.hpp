#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include <pdp/parallel/strategy.hpp>

namespace pdp::parallel {

/// A strategy that is chosen when the program runs: AnyStrategy{Zero{.stage = 2}}. A step costs the same: only plans are made through it.
class AnyStrategy {
 public:
  template <class S>
  requires(!std::same_as<S, AnyStrategy>) && Strategy<S> AnyStrategy(S strategy)
      : plan_{[held = std::move(strategy)](const Outline& model, Place at) { return held.plan(model, at); }} {}

  [[nodiscard]] Plan plan(const Outline& model, Place at) const { return plan_(model, at); }

 private:
  std::function<Plan(const Outline&, Place)> plan_;
};

static_assert(Strategy<AnyStrategy>);

}  // namespace pdp::parallel
