#include <pdp/comm/thread.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <concepts>
#include <vector>

#include "catch.hpp"
#include "engine/learnt.hpp"
#include "engine/two_halves.hpp"
#include "strategy/communicators.hpp"
#include "strategy/tasks.hpp"

namespace equivalence_test {

namespace comm = pdp::comm;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using pdp::testing::serial_equivalence;

// Tests that every strategy gives the losses of one process.

namespace {

/// Checks that the losses are equal and that they fall. Equal losses of a model that does not learn prove nothing.
void check(const pdp::testing::Equivalence& report) {
  INFO(report.text());
  CHECK(report);
  CHECK(report.strategy().back() < 0.8 * report.strategy().front());
}

/// Trains on all ranks. A Trainer is compiled for each strategy over comm::Thread, and once for each other communicator. Only plans depend
/// on the strategy.
template <class C, class TaskType, class S>
std::vector<Learnt> learn_over(const TaskType& task, const S& strategy, int ranks) {
  return pdp::testing::ranks<C>(ranks, [&](C& world) {
    if constexpr (std::same_as<C, comm::Thread>)
      return learn_on(world, task, strategy);
    else
      return learn_on(world, task, strategy::StrategyRef{strategy});
  });
}

template <class C, class TaskType, class Data, class S>
void check(const TaskType& task, const Data& data, const S& strategy, int ranks, const pdp::testing::EquivalenceOptions& options = {}) {
  check(serial_equivalence<C>(task, data, strategy, ranks, options));
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("DataParallel gives the losses of Single, also with short batches and accumulation", "[parallel][equivalence]",
                        Communicators) {
  const int ranks = GENERATE(1, 2, 3, 4);
  const int accumulate = GENERATE(1, 3);
  const auto samples = tasks::samples(250);  // the last batch of an epoch has 26 rows, for three ranks 8, 9 and 9
  const strategy::DataParallel strategy{.accumulate = accumulate, .unit_elements = 64};
  check<TestType>(tasks::classifier, samples, strategy, ranks);
  check<TestType>(tasks::residual_classifier(3), samples, strategy, ranks);
}

TEMPLATE_LIST_TEST_CASE("DataParallel gives the losses of Single when some ranks have no rows", "[parallel][equivalence]", Communicators) {
  const pdp::testing::Batches<std::int32_t> batches = [](int step) {
    const std::size_t rows = std::array<std::size_t, 4>{32, 1, 7, 2}[static_cast<std::size_t>(step) % 4];
    pdp::testing::GlobalBatch<std::int32_t> batch{pdp::testing::normal(rows * 8, step % 8), {}};
    batch.targets = tasks::classes_of(batch.x);
    return batch;
  };
  const int accumulate = GENERATE(1, 2);
  check<TestType>(tasks::classifier, batches, strategy::DataParallel{.accumulate = accumulate}, 4, {.steps = 60});
}

TEST_CASE("Single gives the same losses with and without accumulation", "[parallel][equivalence]") {
  const int accumulate = GENERATE(2, 5);
  check(serial_equivalence<comm::Thread>(tasks::classifier, tasks::samples(250), strategy::Single{.accumulate = accumulate}, 1));
}

TEST_CASE("DataParallel gives the losses of Single for a model whose depth is known at run time", "[parallel][equivalence]") {
  for (const pdp::Index depth : {1, 7})
    check(serial_equivalence<comm::Thread>(tasks::residual_classifier(depth), tasks::samples(100), strategy::DataParallel{}, 2));
}

TEMPLATE_LIST_TEST_CASE("A user-defined strategy that cuts the model in two gives the losses of Single", "[parallel][equivalence]",
                        Communicators) {
  const int micro_batches = GENERATE(1, 3);
  const auto samples = tasks::samples(250);
  for (const int cut : {1, 2}) check<TestType>(tasks::classifier, samples, TwoHalves{cut, micro_batches}, 2);
  check<TestType>(tasks::residual_classifier(4), samples, TwoHalves{3, micro_batches}, 2);
}

TEMPLATE_LIST_TEST_CASE("Pipeline gives the losses of Single for every schedule, cut and number of micro-batches",
                        "[parallel][equivalence][pipeline]", Communicators) {
  using namespace strategy;
  const int ranks = GENERATE(2, 4);
  const int micro_batches = GENERATE(1, 3, 8);  // the last batch of an epoch has 26 rows, so its last micro-batches are short or empty
  if (PDP_TEST_SANITIZED && (ranks == 2) != (micro_batches == 3)) return;
  const auto samples = tasks::samples(250);
  const auto task = tasks::residual_classifier(7);
  check<TestType>(task, samples, Pipeline<GPipe>{.micro_batches = micro_batches}, ranks);
  check<TestType>(task, samples, Pipeline<OneForwardOneBackward>{.micro_batches = micro_batches}, ranks);
  check<TestType>(task, samples, Pipeline<Interleaved>{.micro_batches = micro_batches}, ranks);
  check<TestType>(task, samples, Pipeline<ZeroBubble>{.micro_batches = micro_batches}, ranks);
  check<TestType>(tasks::classifier, samples, Pipeline<>{.micro_batches = micro_batches, .cuts = {2}}, 2);
  check<TestType>(task, samples, Pipeline<GPipe>{.micro_batches = micro_batches, .join_weights = 2}, ranks);
  check<TestType>(task, samples, Pipeline<>{.micro_batches = micro_batches, .join_weights = 8}, ranks);
  check<TestType>(task, samples, Pipeline<Interleaved>{.micro_batches = micro_batches, .join_weights = 3}, ranks);
}

TEST_CASE("Pipeline gives bitwise equal losses with and without recompute", "[parallel][equivalence][pipeline]") {
  using namespace strategy;
  const auto samples = tasks::samples(250);
  const auto task = tasks::residual_classifier(7);
  const auto same = [&](auto strategy, int ranks) {
    const auto kept = serial_equivalence<comm::Thread>(task, samples, strategy, ranks);
    strategy.recompute = true;
    const auto again = serial_equivalence<comm::Thread>(task, samples, strategy, ranks);
    check(again);
    CHECK(again.strategy() == kept.strategy());
  };
  for (const int m : {1, 3, 8}) {
    if (PDP_TEST_SANITIZED && m != 3) continue;
    same(Pipeline<GPipe>{.micro_batches = m}, 3);
    same(Pipeline<>{.micro_batches = m}, 4);
    same(Pipeline<Interleaved>{.micro_batches = m}, 2);
    same(Pipeline<ZeroBubble>{.micro_batches = m}, 3);
    same(Pipeline<>{.micro_batches = m, .join_weights = 3}, 3);
  }
}

TEST_CASE("Pipeline gives the losses of Single on one rank and with several stages on a rank", "[parallel][equivalence][pipeline]") {
  using namespace strategy;
  const auto samples = tasks::samples(250);
  const auto task = tasks::residual_classifier(7);
  check(serial_equivalence<comm::Thread>(task, samples, Pipeline<ZeroBubble>{.micro_batches = 3}, 1));
  check(serial_equivalence<comm::Thread>(task, samples, Pipeline<Interleaved>{.micro_batches = 3}, 1));
  check(serial_equivalence<comm::Thread>(task, samples, Pipeline<Interleaved>{.micro_batches = 5, .schedule = {.chunks = 4}}, 2));
  check(serial_equivalence<comm::Thread>(task, samples, Pipeline<>{.micro_batches = 5}, 8));
}

TEST_CASE("Pipeline gives the losses of Single when micro-batches are empty, for every cut", "[parallel][equivalence][pipeline]") {
  using namespace strategy;
  const pdp::testing::Batches<std::int32_t> batches = [](int step) {
    const std::size_t rows = std::array<std::size_t, 4>{32, 1, 7, 2}[static_cast<std::size_t>(step) % 4];
    pdp::testing::GlobalBatch<std::int32_t> batch{pdp::testing::normal(rows * 8, step % 8), {}};
    batch.targets = tasks::classes_of(batch.x);
    return batch;
  };
  for (const int cut : {1, 2})
    for (const int join : {1, 4})
      check(serial_equivalence<comm::Thread>(
          tasks::classifier, batches, Pipeline<ZeroBubble>{.micro_batches = 6, .cuts = {cut}, .join_weights = join}, 2, {.steps = 60}));
}

TEMPLATE_LIST_TEST_CASE("Zero gives the losses of Single in every stage, also with short batches and accumulation",
                        "[parallel][equivalence][zero]", Communicators) {
  const int stage = GENERATE(1, 2, 3);
  const int ranks = GENERATE(1, 2, 3, 4);
  if (PDP_TEST_SANITIZED && ranks != 2 && ranks != 3) return;
  const auto samples = tasks::samples(250);
  for (const int accumulate : {1, 3})
    for (const pdp::Index unit_elements : {1, 1000}) {  // one unit for each layer, or one for the whole model
      const strategy::Zero strategy{.stage = stage, .accumulate = accumulate, .unit_elements = unit_elements};
      check<TestType>(tasks::residual_classifier(3), samples, strategy, ranks);
    }
}

TEMPLATE_LIST_TEST_CASE("DataParallel, Zero and Pipeline repeat a training bit for bit", "[parallel][equivalence]", Communicators) {
  const auto task = tasks::residual_classifier(3);
  const auto same = [&task](const auto& strategy, int ranks) {
    const auto first = learn_over<TestType>(task, strategy, ranks);
    CHECK(first[0].losses.back() < first[0].losses.front());
    CHECK(learn_over<TestType>(task, strategy, ranks) == first);
  };
  for (const int ranks : {2, 3}) {
    same(strategy::DataParallel{.accumulate = 2}, ranks);
    for (const int stage : {1, 2}) same(strategy::Zero{.stage = stage, .unit_elements = 64}, ranks);
    same(strategy::Pipeline<>{.micro_batches = 3}, ranks);
    same(strategy::Pipeline<plan::ZeroBubble>{.micro_batches = 3, .join_weights = 2}, ranks);
  }
}

}  // namespace equivalence_test
