#include <pdp/optim/optimizer.hpp>

#include <array>
#include <cmath>

#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>

#include "catch.hpp"
#include "optim/sequence.hpp"

namespace optim = pdp::optim;

namespace {

/// A user-written optimizer: Hinton's RMSprop with momentum.
struct RmsProp {
  float lr = 0.01f, decay = 0.9f, momentum = 0.5f;
  template <class V>
  struct State {
    V square, velocity;
  };
  template <class V>
  void update(V& w, const V& g, State<V>& state, const optim::StepInfo& step) const {
    using std::sqrt;
    state.square = decay * state.square + (1 - decay) * g * g;
    state.velocity = momentum * state.velocity + g / (sqrt(state.square) + 1e-8f);
    w = w - step.lr_factor * lr * state.velocity;
  }
};

/// A rule without state that computes its rate once a step.
struct Decaying {
  template <class V>
  struct State {};
  struct Rate {
    float now;
  };
  [[nodiscard]] Rate constants(const optim::StepInfo& step) const { return {step.lr_factor / static_cast<float>(step.number)}; }
  template <class V>
  void update(V& w, const V& g, State<V>&, const Rate& rate) const {
    w = w - rate.now * g;
  }
};

struct NoState {
  template <class V>
  void update(V& w, const V& g, const optim::StepInfo&) const {
    w = w - g;
  }
};
struct NoUpdate {
  template <class V>
  struct State {};
};
struct StateThatOwns {
  template <class V>
  struct State {
    std::vector<V> history;
  };
  template <class V>
  void update(V& w, const V& g, State<V>&, const optim::StepInfo&) const {
    w = w - g;
  }
};

}  // namespace

TEST_CASE("Optimizer requires update and a State that owns no memory", "[optim]") {
  static_assert(optim::Optimizer<RmsProp> && optim::Optimizer<Decaying>);
  static_assert(!optim::Optimizer<NoState> && !optim::Optimizer<NoUpdate> && !optim::Optimizer<StateThatOwns> && !optim::Optimizer<int>);
  static_assert(optim::state_fields<RmsProp> == 2 && optim::state_fields<Decaying> == 0);
  static_assert(optim::state_fields<optim::AdamW> == 2 && optim::state_fields<optim::Sgd> == 1);
  SUCCEED();
}

TEST_CASE("optim::constants returns the constants of a rule, or StepInfo if it has none", "[optim]") {
  static_assert(std::same_as<decltype(optim::constants(Decaying{}, {})), Decaying::Rate>);
  static_assert(std::same_as<decltype(optim::constants(RmsProp{}, {})), optim::StepInfo>);
  CHECK(optim::constants(Decaying{}, {4, 0.5f}).now == 0.125f);
  CHECK(optim::constants(RmsProp{}, {4, 0.5f}).number == 4);
  CHECK(optim::constants(RmsProp{}, {4, 0.5f}).lr_factor == 0.5f);
}

TEST_CASE("update applies a user-written RMSprop as its formula says", "[optim]") {
  std::array<double, sequence::count> square{}, velocity{};
  const auto expected = sequence::expected_after([&](double& w, double g, std::size_t i, std::int64_t, double factor) {
    square[i] = 0.9 * square[i] + 0.1 * g * g;
    velocity[i] = 0.5 * velocity[i] + g / (std::sqrt(square[i]) + 1e-8);
    w -= factor * 0.01 * velocity[i];
  });
  CHECK(support::difference(sequence::parameters_after(RmsProp{}), expected) < 3e-6);
}

TEST_CASE("update passes the constants of each step to a user-written rule without state", "[optim]") {
  const auto expected = sequence::expected_after(
      [](double& w, double g, std::size_t, std::int64_t step, double factor) { w -= factor / static_cast<double>(step) * g; });
  CHECK(support::difference(sequence::parameters_after(Decaying{}), expected) < 3e-6);
}
