#include <pdp/optim/adam.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/optim/sgd.hpp>

#include <concepts>
#include <type_traits>

#include "catch.hpp"

namespace grouped_test {

namespace optim = pdp::optim;

namespace {

/// A rule that scales its rate itself.
struct SignDescent {
  float speed = 1;
  template <class V>
  struct State {};
  template <class V>
  constexpr void update(V& w, const V& g, State<V>&, const optim::StepInfo& step) const {
    w = w - speed * step.lr_factor * g;
  }
  [[nodiscard]] constexpr SignDescent scaled(float lr_factor, float) const { return {speed * lr_factor}; }
};

constexpr optim::Grouped grouped{optim::Sgd{.lr = 0.5f, .momentum = 0.9f, .weight_decay = 0.25f}, optim::no_decay_on_biases_and_norms,
                                 optim::ParameterGroup{.chooses = [](const optim::ParameterInfo& of) { return of.layer == "0"; }}};

}  // namespace

TEST_CASE("Grouped is an optimizer with the state of its rule", "[optim]") {
  static_assert(optim::Optimizer<std::remove_const_t<decltype(grouped)>> && optim::has_groups<std::remove_const_t<decltype(grouped)>>);
  static_assert(!optim::has_groups<optim::Sgd> && std::same_as<optim::RuleOf<std::remove_const_t<decltype(grouped)>>, optim::Sgd>);
  static_assert(optim::state_fields<std::remove_const_t<decltype(grouped)>> == 1 && grouped.groups.size() == 2);
  CHECK(optim::needed_state_fields(grouped) == 1);
  CHECK(optim::needed_state_fields(optim::Grouped{optim::Sgd{}, optim::no_decay_on_biases_and_norms}) == 0);
  CHECK(optim::state_name<optim::Grouped<optim::Adam, 1>>(1) == "exp_avg_sq");
}

TEST_CASE("scaled() multiplies the rate and the weight decay of a rule, or calls its own scaled()", "[optim]") {
  const optim::Sgd sgd =
      optim::scaled(optim::Sgd{.lr = 0.5f, .momentum = 0.9f, .weight_decay = 0.25f}, {.lr_factor = 3, .decay_factor = 2});
  CHECK(sgd.lr == 1.5f);
  CHECK(sgd.weight_decay == 0.5f);
  CHECK(sgd.momentum == 0.9f);
  CHECK(optim::scaled(SignDescent{2}, {.lr_factor = 4, .decay_factor = 0}).speed == 8);
  static_assert(optim::Optimizer<optim::Grouped<SignDescent, 1>>);
}

TEST_CASE("no_decay_on_biases_and_norms chooses vectors alone", "[optim]") {
  const auto chooses = optim::no_decay_on_biases_and_norms.chooses;
  CHECK(chooses({.name = "0.bias", .layer = "0", .kind = "bias", .elements = 3, .is_vector = true}));
  CHECK_FALSE(chooses({.name = "0.weight", .layer = "0", .kind = "weight", .elements = 3}));
}

}  // namespace grouped_test
