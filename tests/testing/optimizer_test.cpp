#include <pdp/testing/optimizer.hpp>

#include <cmath>
#include <string>
#include <type_traits>

#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>

#include "../examples/docs/lion.hpp"
#include "catch.hpp"

namespace optim = pdp::optim;
namespace testing = pdp::testing;

namespace optimizer_test {

namespace {

enum class Fault { none, divides, vectors, order, state };

/// Gradient descent with momentum and a fault.
struct Descent {
  Fault fault = Fault::none;
  template <class V>
  struct State {
    V velocity;
  };
  [[nodiscard]] bool keeps_state() const { return fault != Fault::state; }
  template <class V>
  void update(V& w, const V& g, State<V>& state, const pdp::StepInfo& step) const {
    state.velocity = 0.5f * state.velocity + g;
    V move = state.velocity;
    if (fault == Fault::divides) move = g * g / g;
    if (!std::is_same_v<V, float> && fault == Fault::vectors) move = 2 * move;
    if constexpr (!std::is_same_v<V, float>)
      if (fault == Fault::order) move = V::all(1e-7f * move.sum());
    w = w - 0.01f * step.lr_factor * move;
  }
};

std::string told(Fault fault) { return testing::check_optimizer(Descent{fault}, {.tolerance = fault == Fault::order ? 10 : 1e-5}).text(); }

}  // namespace

TEST_CASE("check_optimizer accepts the rules of pdp and correct ones", "[testing][optim]") {
  const pdp::Index elements = GENERATE(as<pdp::Index>{}, 1, 16, 101);
  const auto accepts = [elements](const auto& rule) {
    const auto result = testing::check_optimizer(rule, {.elements = elements});
    CHECK(result.text().empty());
    CHECK(static_cast<bool>(result));
  };
  accepts(optim::Sgd{.lr = 0.1f, .weight_decay = 0.1f});
  accepts(optim::Sgd{.lr = 0.1f, .momentum = 0.9f, .nesterov = true});
  accepts(optim::Adam{.weight_decay = 0.1f});
  accepts(optim::AdamW{});
  accepts(Lion{.lr = 0.01f, .weight_decay = 0.1f});
  accepts(Descent{});
}

TEST_CASE("check_optimizer names the path, the parameter, the value found and the value expected", "[testing][optim]") {
  CHECK_THAT(told(Fault::divides),
             StartsWith("update gives NaN in step 1 for the parameter ") && EndsWith(" and the gradient 0; expected a finite value"));
  CHECK_THAT(told(Fault::vectors), StartsWith("update with vectors of 16 bytes gives ") &&
                                       Contains(" as parameter 0 after 5 steps; expected ") && EndsWith(", as update with a float V"));
  CHECK_THAT(told(Fault::order),
             StartsWith("update of parts, with vectors of 16 bytes, gives ") && EndsWith(", as in an update of all parameters at once"));
  CHECK_THAT(told(Fault::state),
             StartsWith("update with vectors of 16 bytes gives ") && EndsWith("and its state, which keeps_state() says is not needed"));
}

}  // namespace optimizer_test
