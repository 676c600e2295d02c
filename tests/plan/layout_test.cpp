#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/layout.hpp>

#include <vector>

#include "catch.hpp"

namespace layout_test {

namespace nn = pdp::nn;
using namespace pdp::plan;
using pdp::Index;

namespace {

/// Two layers of 64 x 64 parameters each, and one without parameters.
const nn::Outline model = nn::outline(nn::Sequential{nn::Linear{64, 64, false}, nn::Relu{}, nn::Linear{64, 64, false}}, pdp::Shape{64});
constexpr Index elements = 64 * 64;

Plan plan_of(Sharding sharding, int slices) {
  Plan plan;
  plan.units = {{1, 3, 0, sharding, slices, slices - 1, 0}, {0, 1, 0, sharding, slices, slices - 1, 1}};
  return plan;
}

std::vector<Effect> effects_of(const Instruction& i) {
  std::vector<Effect> found;
  for_each_effect(i, model, [&found](const Effect& effect) { found.push_back(effect); });
  return found;
}

}  // namespace

TEST_CASE("layout stores only slices of sharded tensors and adds buffers for whole units", "[parallel]") {
  const Layout whole = layout(plan_of(Sharding::none, 1), model), state = layout(plan_of(Sharding::state, 4), model),
               gradients = layout(plan_of(Sharding::gradients, 4), model), parameters = layout(plan_of(Sharding::parameters, 4), model);
  CHECK(whole.values.elements() == 2 * elements);
  CHECK(whole.updated() == 2 * elements);
  CHECK(state.values.elements() == 2 * elements);
  CHECK(state.gradients.elements() == 2 * elements);
  CHECK(gradients.values.elements() == 2 * elements);
  CHECK(gradients.gradients.kept == std::vector<Index>{elements / 4, elements / 4});
  CHECK(gradients.gradients.buffers == std::vector<Index>{elements, elements});
  CHECK(parameters.values.elements() == 2 * elements / 4 + 2 * elements);
  CHECK(parameters.units[1].begin() == 3 * elements / 4);
  for (const Layout& each : {state, gradients, parameters}) CHECK(each.updated() == 2 * elements / 4);
}

TEST_CASE("layout has memory for sums of slices and for rounded gradients", "[parallel]") {
  Plan plan = plan_of(Sharding::gradients, 4);
  CHECK(layout(plan, model).scratch.empty());
  plan.step = {on_unit(Op::reduce_start, 1, 0, -1, true)};
  CHECK(layout(plan, model).scratch == std::vector<Index>{0, elements / 4});
  CHECK(Layout::sum(layout(plan, model).rounded) == 2 * (elements + elements / 4));
  CHECK(layout(plan, model).rounded_place == std::vector<std::size_t>{0, 1});
  const Layout whole = layout(plan_of(Sharding::none, 1), model);
  CHECK(whole.rounded_place == std::vector<std::size_t>{2, 3});
  CHECK(Layout::sum(whole.rounded) == 2 * elements);
}

TEST_CASE("for_each_effect lists the tensors that an instruction reads, writes or receives", "[parallel]") {
  CHECK(effects_of(compute(Op::forward, 0, 2, 3)) == std::vector<Effect>{{Kind::activation, 2, Access::read, 2},
                                                                         {Kind::activation, 3, Access::write, 2},
                                                                         {Kind::saved, 2, Access::write, 2}});
  CHECK(effects_of(compute(Op::backward_input, 0, 0, 1)).empty());  // no earlier layer has parameters, so the gradient is not computed
  CHECK(effects_of(compute(Op::loss, 0, 3, 3)) ==
        std::vector<Effect>{{Kind::activation, 3, Access::read}, {Kind::gradient, 3, Access::write}});
  CHECK(effects_of(message(Op::receive_start, Tensor::gradient, 0, 2, 1)) == std::vector<Effect>{{Kind::gradient, 2, Access::arrive}});
  CHECK(effects_of(message(Op::send_wait, Tensor::activation, 0, 2, 1)) == std::vector<Effect>{{Kind::activation, 2, Access::read}});
  CHECK(effects_of(on_unit(Op::update, 0)).empty());
}

}  // namespace layout_test
