#pragma once

#include <pdp/comm/any.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/testing/ranks.hpp>

/// Strategies and communicators without their types, so that a Trainer is compiled once for all of them. Its engine is the same anyway.
namespace erased {

/// Returns a strategy that makes the same plans. A strategy that divides no layers is borrowed.
template <pdp::strategy::Strategy S>
auto strategy(const S& strategy) {
  if constexpr (pdp::strategy::Divides<S>)
    return pdp::strategy::AnyStrategy{strategy};
  else
    return pdp::strategy::StrategyRef{strategy};
}

/// Runs f(world) on ranks of the communicator C, with a world of type comm::Any.
template <pdp::comm::Communicator C, class F>
auto ranks(int size, F&& f) {
  return pdp::testing::ranks<C>(size, [&f](C& world) {
    pdp::comm::Any any = pdp::comm::Any::borrow(world);
    return f(any);
  });
}

}  // namespace erased
