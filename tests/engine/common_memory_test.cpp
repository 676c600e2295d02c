#include <pdp/plan/common_memory.hpp>

#include <pdp/comm/any.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/describe.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/verify.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "engine/learnt.hpp"
#include "erased.hpp"
#include "strategy/tasks.hpp"

namespace common_memory_test {

namespace comm = pdp::comm;
using namespace pdp::strategy;

// Each rank of a group that shares memory updates one slice of each unit. Only the time and the memory of a step may differ from updates by
// messages.

namespace {

const pdp::nn::Outline outline = pdp::nn::outline(tasks::classifier.model, pdp::Shape{8});

template <class S>
std::vector<Plan> plans_in_common_memory(const S& strategy, int ranks) {
  std::vector<Plan> all = plans(strategy, outline, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    Plan& plan = all[static_cast<std::size_t>(rank)];
    plan = in_common_memory(std::move(plan), {rank, ranks});
  }
  return all;
}

/// Runs backward_weight and starts the reduction before it runs backward_input of the same layer.
template <class S>
struct WeightsFirst {
  S inner{};

  [[nodiscard]] Plan plan(const Outline& model, Place at) const {
    Plan plan = inner.plan(model, at);
    for (std::size_t i = 0; i + 2 < plan.step.size(); ++i)
      if (plan.step[i].op == Op::backward_input && plan.step[i + 1].op == Op::backward_weight && plan.step[i + 2].op == Op::reduce_start)
        std::rotate(plan.step.begin() + static_cast<std::ptrdiff_t>(i), plan.step.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    plan.step.begin() + static_cast<std::ptrdiff_t>(i) + 3);
    return plan;
  }
};

/// DataParallel, except that rank 1 numbers its two units in the opposite order. Its work is the same.
struct Renumbered {
  [[nodiscard]] Plan plan(const Outline& model, Place at) const {
    Plan plan = DataParallel{.unit_elements = 1}.plan(model, at);
    if (at.rank != 1) return plan;
    std::swap(plan.units[0], plan.units[1]);
    for (Instructions* list : {&plan.setup, &plan.step})
      for (Instruction& i : *list)
        if (i.unit >= 0) i.unit = static_cast<std::int16_t>(1 - i.unit);
    return plan;
  }
};

}  // namespace

TEST_CASE("in_common_memory keeps plans sound, with and without gradient clipping", "[parallel][common_memory]") {
  const int ranks = GENERATE(1, 2, 3, 5), accumulate = GENERATE(1, 2);
  for (const double clip_norm : {0.0, 1.0}) {
    auto all = plans_in_common_memory(DataParallel{.accumulate = accumulate, .unit_elements = 1}, ranks);
    for (Plan& plan : all) plan = plan_for({.clip_norm = clip_norm}, std::move(plan));
    INFO(explain(verify(outline, all), all));
    CHECK(verify(outline, all));
    all = plans(DataParallel{.accumulate = accumulate}, outline, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      Plan& plan = all[static_cast<std::size_t>(rank)];
      plan = in_common_memory(plan_for({.clip_norm = clip_norm}, std::move(plan)), {rank, ranks});
    }
    INFO(explain(verify(outline, all), all));
    CHECK(verify(outline, all));
  }
}

TEST_CASE("in_common_memory slices only units that all ranks of the world update alike", "[parallel][common_memory]") {
  const Plan cut = plans_in_common_memory(DataParallel{.unit_elements = 1}, 3)[1];
  CHECK(cut.units.size() == 2);
  for (const Unit& unit : cut.units) CHECK((unit.sharding == Sharding::state && unit.slices == 3 && unit.slice == 1));
  const auto unchanged = [](const auto& strategy, int ranks) {
    const auto before = plans(strategy, outline, ranks), after = plans_in_common_memory(strategy, ranks);
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      CHECK(before[rank].step == after[rank].step);
      for (std::size_t u = 0; u < before[rank].units.size(); ++u) CHECK(before[rank].units[u].sharding == after[rank].units[u].sharding);
    }
  };
  unchanged(DataParallel{}, 1);
  unchanged(Pipeline<>{.micro_batches = 2}, 2);
  for (const int stage : {1, 2, 3}) unchanged(Zero{.stage = stage}, 3);

  Plan local = DataParallel{}.plan(outline, {0, 2});  // without reductions: each rank trains by itself
  std::erase_if(local.step, [](const Instruction& i) { return i.op == Op::reduce_start || i.op == Op::reduce_wait; });
  const Plan kept = in_common_memory(local, {0, 2});
  CHECK(kept.step == local.step);
  CHECK(kept.units.front().sharding == Sharding::none);
}

TEST_CASE("Two ranks that share memory train to the same bits as two ranks over Tcp", "[parallel][common_memory]") {
  const auto same = [](const auto& task, StrategyRef strategy) {
    const auto by_messages = learn<comm::Tcp>(task, strategy, 2);
    CHECK(by_messages[0].losses.back() < by_messages[0].losses.front());
    CHECK(learn<comm::Thread>(task, strategy, 2) == by_messages);
    CHECK(learn<comm::Shm>(task, strategy, 2) == by_messages);
  };
  const int accumulate = GENERATE(1, 3);
  const pdp::Index unit_elements = GENERATE(1, 8 * 1024);
  same(tasks::classifier, DataParallel{.accumulate = accumulate, .unit_elements = unit_elements});
  same(tasks::residual_classifier(3), DataParallel{.accumulate = accumulate, .unit_elements = unit_elements});
  same(tasks::residual_classifier(3), Zero{.stage = 1, .accumulate = accumulate, .unit_elements = unit_elements});
}

TEST_CASE("Ranks that share memory train to the same bits on every rank, run and backend", "[parallel][common_memory]") {
  const int ranks = GENERATE(3, 4, 7);
  const auto task = tasks::residual_classifier(2);
  const auto in_threads = learn<comm::Thread>(task, DataParallel{.unit_elements = 1}, ranks);
  for (const Learnt& each : in_threads) CHECK(each == in_threads.front());
  CHECK(learn<comm::Thread>(task, DataParallel{.unit_elements = 1}, ranks) == in_threads);
  CHECK(learn<comm::Shm>(task, DataParallel{.unit_elements = 1}, ranks) == in_threads);
}

TEST_CASE("Ranks that share memory sum and publish slices of odd lengths completely", "[parallel][common_memory]") {
  const pdp::Task task{pdp::nn::Sequential{pdp::nn::Linear{8, 3001}, pdp::nn::Tanh{}, pdp::nn::Linear{3001, 4}}, pdp::loss::CrossEntropy{},
                       pdp::optim::Adam{.lr = 1e-3f}};
  CHECK(learn<comm::Thread>(task, DataParallel{}, 2) == learn<comm::Tcp>(task, DataParallel{}, 2));
  const auto of_three = learn<comm::Thread>(task, DataParallel{}, 3), by_messages = learn<comm::Tcp>(task, DataParallel{}, 3);
  for (const Learnt& each : of_three) CHECK(each == of_three.front());
  CHECK(pdp::testing::relative_difference(of_three.front().losses, by_messages.front().losses) < 1e-5);
}

TEST_CASE("in_common_memory leaves a unit whole if its parameters are used after its reduction has started", "[parallel][common_memory]") {
  const WeightsFirst<DataParallel> first{{.unit_elements = 1}};
  const std::vector<Plan> all = plans(first, outline, 2);
  CHECK(verify(outline, all));
  const Plan adapted = in_common_memory(all[0], {0, 2});
  for (const Unit& unit : adapted.units) CHECK(unit.sharding == Sharding::none);
  CHECK(learn<comm::Thread>(tasks::classifier, first, 2) == learn<comm::Tcp>(tasks::classifier, first, 2));

  const auto refused = plans(WeightsFirst<Zero>{{.stage = 1, .unit_elements = 1}}, outline, 2);
  CHECK_THAT(explain(verify(outline, refused), refused),
             Contains("computes with parameters that other ranks may change, as the reduction of their gradients has started"));
}

TEST_CASE("Ranks that share memory throw PlanError if they number their units differently", "[parallel][common_memory]") {
  CHECK(verify(outline, plans(Renumbered{}, outline, 2)));
  CHECK(learn<comm::Tcp>(tasks::classifier, Renumbered{}, 2)[0].losses.size() == 9);
  // Each rank finds the difference by itself, before it changes the parameters of the others.
  const Renumbered strategy;
  const auto found = erased::ranks<comm::Thread>(2, [&](comm::Any& world) {
    pdp::Trainer trainer{world, StrategyRef{strategy}, tasks::classifier, {.global_batch = 32}};
    const auto parameters = [&] {
      std::vector<float> all;
      trainer.engine().stage().for_each_parameter(
          [&](const auto&, std::span<float> values) { all.insert(all.end(), values.begin(), values.end()); });
      return all;
    };
    const std::vector<float> before = parameters();
    std::string told;
    try {
      trainer.fit(tasks::samples(64), {.epochs = 1}, [](const pdp::Epoch&) {});
    } catch (const pdp::PlanError& error) {
      told = error.what();
    }
    world.barrier();
    return parameters() == before ? told : "the parameters have changed";
  });
  for (const std::string& each : found)
    CHECK_THAT(each, Contains("the ranks of the group are at different units, or order them differently"));
}

TEST_CASE("describe counts a slice of the optimizer state if ranks share memory", "[parallel][common_memory]") {
  const pdp::TrainerOptions options{.global_batch = 32};
  const auto task = tasks::residual_classifier(2);
  const auto state = [&](bool common_memory) {
    return pdp::describe(task, DataParallel{.unit_elements = 1}, 4, options, pdp::Float32{}, common_memory).ranks[2].optimizer_state;
  };
  CHECK(3 * state(true) < state(false));  // a quarter, plus padding to cache lines
  const auto described = pdp::testing::ranks<comm::Thread>(4, [&](comm::Thread& world) {
    return pdp::describe(task, DataParallel{.unit_elements = 1}, world, options).ranks[2].optimizer_state;
  });
  CHECK(described.front() == state(true));
  const auto rounded = pdp::testing::ranks<comm::Thread>(4, [&](comm::Thread& world) {  // rounded gradients travel in messages
    return pdp::describe(task, DataParallel{.unit_elements = 1}, world, options, pdp::Bfloat16Gradients{}).ranks[2].optimizer_state;
  });
  CHECK(rounded.front() == state(false));
  CHECK(pdp::describe(task, DataParallel{.unit_elements = 1}, 4, options, pdp::Bfloat16Gradients{}, true).ranks[2].optimizer_state ==
        state(false));
}

}  // namespace common_memory_test
