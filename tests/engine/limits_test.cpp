#include <pdp/comm/any.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/verify.hpp>

#include <limits>
#include <vector>

#include "catch.hpp"

namespace limits_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::strategy;
using pdp::Index, pdp::Shape;

namespace {

constexpr int largest = 32'767;

nn::Outline chain(int layers) {
  nn::Outline outline = nn::outline(nn::Linear{3, 3}, Shape{3});
  while (outline.size() < layers) outline.layers.push_back(outline.layers.front());
  return outline;
}

/// Checks that the strategy throws with these words on the first and the last rank of worlds of several sizes.
template <class S>
void check_refused(const S& strategy, const nn::Outline& model, const std::string& words) {
  for (const int size : {1, 2, 64, 65, 1000})
    for (const int rank : {0, size - 1}) {
      if (std::same_as<S, Single> && size > 1) continue;
      CAPTURE(size, rank);
      CHECK_THROWS_WITH(strategy.plan(model, {rank, size}), Contains(words));
    }
}

/// DataParallel with one mistake in the plan of the last rank.
struct Mistaken {
  void (*spoil)(Plan&) = nullptr;
  [[nodiscard]] Plan plan(const Outline& model, Place at) const {
    Plan plan = DataParallel{}.plan(model, at);
    if (at.rank == at.size - 1) spoil(plan);
    return plan;
  }
};

const std::vector<void (*)(Plan&)> mistakes{
    [](Plan& plan) { plan.step[1].micro_batch = 1; },    [](Plan& plan) { plan.step[1].micro_batch = -1; },
    [](Plan& plan) { plan.step[1].last = 77; },          [](Plan& plan) { plan.step[1].first = -1; },
    [](Plan& plan) { plan.evaluate[0].last = largest; }, [](Plan& plan) { plan.setup[0].unit = 5; },
    [](Plan& plan) { plan.setup[0].unit = -1; },         [](Plan& plan) { plan.setup[0].group = 1; },
    [](Plan& plan) { plan.units[0].last = 12; },         [](Plan& plan) { plan.units[0].group = 2; },
    [](Plan& plan) { plan.units[0].slice = 1; },         [](Plan& plan) { plan.micro_batches = 0; },
    [](Plan& plan) { plan.micro_batches = -3; },         [](Plan& plan) { plan.share.index = plan.share.count; },
    [](Plan& plan) { plan.tensor_group = 4; },
};

}  // namespace

TEST_CASE("Every strategy rejects fewer than 1 or more than 32767 micro-batches, on every world size", "[parallel][plan]") {
  const nn::Outline model = chain(1000);
  for (const int number : {0, -1, 32'768, 33'000, 65'536, 65'537, std::numeric_limits<int>::max()}) {
    const std::string words = pdp::text(" = ", number, " was given; it takes 1 to 32767 micro-batches");
    check_refused(Single{number}, model, words);
    check_refused(DataParallel{.accumulate = number}, model, words);
    for (const int stage : {1, 2, 3}) check_refused(Zero{.stage = stage, .accumulate = number}, model, words);
    check_refused(TensorParallel{number}, model, words);
    check_refused(Pipeline<>{.micro_batches = number}, model, words);
    check_refused(Pipeline<ZeroBubble>{.join_weights = number}, model, words);
    for (const int size : {1, 64, 65, 1000})
      CHECK_THROWS_WITH((Hybrid<>{.mesh = {size, 1, 1}, .micro_batches = number}.plan(model, {0, size})), Contains(words));
  }
}

TEST_CASE("verify accepts plans of 32767 micro-batches", "[parallel][plan]") {
  const nn::Outline model = chain(2);
  CHECK(verify(Single{largest}, model, 1));
  CHECK(verify(DataParallel{.accumulate = largest}, model, 2));
  CHECK(verify(Zero{.stage = 3, .accumulate = largest}, model, 2));
  CHECK(verify(Pipeline<>{.micro_batches = largest}, model, 2));
  CHECK(DataParallel{.accumulate = largest}.plan(model, {64, 65}).step.size() > 5 * largest);
}

TEST_CASE("Strategies reject a model of more than 32767 layers, on every world size", "[parallel][plan]") {
  const nn::Outline model = chain(33'000);
  const std::string words = "the model has 33000 layers; a plan takes at most 32767";
  check_refused(Single{}, model, words);
  check_refused(DataParallel{}, model, words);
  check_refused(Zero{.stage = 3}, model, words);
  check_refused(Pipeline<>{}, model, words);
  CHECK_THROWS_WITH((Hybrid<>{.mesh = {65, 1, 1}}.plan(model, {0, 65})), Contains(words));
  CHECK(DataParallel{}.plan(chain(largest), {0, 65}).step.size() > 2 * largest);
}

TEST_CASE("compute, message, on_unit and collective reject numbers that do not fit into an Instruction", "[parallel][plan]") {
  for (const int number : {-2, 32'768, 65'536, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    CHECK_THROWS_AS(compute(Op::forward, number, 0, 1), pdp::PlanError);
    CHECK_THROWS_AS(compute(Op::forward, 0, number, 1), pdp::PlanError);
    CHECK_THROWS_AS(compute(Op::forward, 0, 0, number), pdp::PlanError);
    CHECK_THROWS_AS(message(Op::send_start, Tensor::activation, number, 0, 0), pdp::PlanError);
    CHECK_THROWS_AS(message(Op::send_start, Tensor::activation, 0, number, 0), pdp::PlanError);
    CHECK_THROWS_AS(message(Op::send_start, Tensor::activation, 0, 0, 0, number), pdp::PlanError);
    CHECK_THROWS_AS(on_unit(Op::update, number), pdp::PlanError);
    CHECK_THROWS_AS(on_unit(Op::update, 0, number), pdp::PlanError);
    CHECK_THROWS_AS(collective(Op::norm_start, number), pdp::PlanError);
  }
  CHECK_THROWS_WITH(compute(Op::forward, 33'000, 0, 1), Contains("micro-batch 33000") && Contains("32767"));
  CHECK(compute(Op::forward, largest, 0, 1).micro_batch == largest);
}

TEST_CASE("Pipeline rejects more stages than a plan can number", "[parallel][plan]") {
  for (const int chunks : {40'000, std::numeric_limits<int>::max()})
    CHECK_THROWS_AS((Pipeline<Interleaved>{.schedule = {chunks}}.plan(chain(4), {0, 65})), pdp::ConfigError);
}

TEST_CASE("verify checks plans of more than 64 ranks and finds a mistake of the last rank", "[parallel][plan]") {
  const nn::Outline model = chain(4);
  for (const int ranks : {65, 200}) {
    CHECK(verify(DataParallel{}, model, ranks));
    CHECK(verify(Zero{.stage = 3, .unit_elements = 1}, model, ranks));
    for (const auto spoil : mistakes) {
      std::vector<Plan> all = plans(Mistaken{spoil}, model, ranks);
      const Verdict verdict = verify(model, all);
      CHECK(!verdict);
      CHECK_THAT(explain(verdict, all), Contains("the plan cannot run: rank "));
    }
  }
  CHECK(verify(DataParallel{}, model, 1000));
  CHECK(verify(Hybrid<>{.mesh = {250, 4, 1}, .micro_batches = 8}, model, 1000));
}

TEST_CASE("verify_numbers finds an index out of range in one rank's plan, for any world size", "[parallel][plan]") {
  const nn::Outline model = chain(4);
  for (const int size : {1, 65, 1'000'000}) {
    const Place last{size - 1, size};
    CHECK(verify_numbers(model, DataParallel{}.plan(model, last), last.rank));
    CHECK(verify_numbers(model, Zero{.stage = 3}.plan(model, last), last.rank));
    for (const auto spoil : mistakes) {
      const Plan plan = Mistaken{spoil}.plan(model, last);
      const Verdict verdict = verify_numbers(model, plan, last.rank);
      CHECK(!verdict);
      CHECK_THAT(explain(verdict, plan), Contains(pdp::text("the plan cannot run: rank ", last.rank)));
    }
  }
}

TEST_CASE("Trainer on 65 ranks rejects an invalid plan and too many micro-batches", "[parallel][plan]") {
  const pdp::Task task{nn::Sequential{nn::Linear{3, 3}}, pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{}};
  const auto thrown = [&](StrategyRef strategy) {
    return pdp::testing::errors<comm::Thread>(65, [&](comm::Thread& world) {
      comm::Any any = comm::Any::borrow(world);
      const pdp::Trainer trainer{any, strategy, task, {.global_batch = 130}};
    });
  };
  // The first rank that throws aborts the world. The errors of the others name that rank and its reason.
  for (const auto& each : thrown(DataParallel{.accumulate = 33'000}))
    CHECK_THAT(each.what(), Contains("accumulate = 33000 was given; it takes 1 to 32767 micro-batches"));
  for (const auto spoil : {mistakes[0], mistakes[5]})
    for (const auto& each : thrown(Mistaken{spoil})) CHECK_THAT(each.what(), Contains("the plan cannot run: rank 64"));
}

}  // namespace limits_test
