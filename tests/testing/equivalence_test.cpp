#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/testing/equivalence.hpp>

#include <algorithm>
#include <atomic>
#include <functional>

#include "catch.hpp"

namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using pdp::testing::Equivalence, pdp::testing::EquivalenceOptions, pdp::testing::serial_equivalence;

// The harness must accept equal losses and reject different ones. Otherwise it proves nothing.

namespace {

constexpr nn::Sequential model{nn::Linear{6, 16}, nn::Tanh{}, nn::Linear{16, 3}};

/// A faulty loss: the mean over a rank's own rows. It is right on one rank only. Means of means, and sums of means, weigh rows unevenly.
struct OwnMean : pdp::loss::CrossEntropy {
  template <class D, class T>
  void operator()(const D& device, pdp::Matrix<const T> output, std::span<const Target> classes, const double*, pdp::Matrix<T> gradient,
                  pdp::LossSums* sums) const {
    const double scale = 1 / static_cast<double>(output.rows);
    pdp::loss::CrossEntropy::operator()(device, output, classes, &scale, gradient, sums);
  }
};
constexpr pdp::Task task{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.2f}, pdp::optim::Linear{.steps = 100, .to = 0.5f}};
constexpr pdp::Task own_mean_task{model, OwnMean{}, pdp::optim::Sgd{.lr = 0.2f}};

pdp::data::InMemory<std::int32_t> samples() {
  const auto x = pdp::testing::normal(150 * 6, 3);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 6) classes.push_back(row[0] > 0 ? 2 : row[1] > 0 ? 1 : 0);
  return {pdp::Shape{6}, x, classes};
}

/// DataParallel with one change to its plan.
template <class Change>
struct Changed {
  Change change;
  [[nodiscard]] plan::Plan plan(const nn::Outline& outline, plan::RankInWorld at) const {
    plan::Plan plan = strategy::DataParallel{.unit_elements = 1}.plan(outline, at);
    change(plan, at);
    return plan;
  }
};
template <class Change>
Changed(Change) -> Changed<Change>;

}  // namespace

TEST_CASE("serial_equivalence accepts equal losses and reports how much they differ", "[testing][equivalence]") {
  const Equivalence report = serial_equivalence<comm::Thread>(task, samples(), strategy::DataParallel{}, 3, {.steps = 50});
  CHECK(report);
  CHECK_THAT(report.text(), StartsWith("in 50 steps the losses differ by at most "));
  CHECK(report.single().size() == 50);
  CHECK(report.strategy().size() == 50);
  CHECK(report.single().back() < 0.8 * report.single().front());
  CHECK(report.control() != report.single());  // the control run adds rows in another order
  CHECK(pdp::testing::relative_difference(report.control(), report.single()) < 1e-5);
}

TEST_CASE("serial_equivalence rejects a plan in which all ranks take the same share", "[testing][equivalence]") {
  const Changed twice{[](plan::Plan& plan, plan::RankInWorld) { plan.share.index = 0; }};
  CHECK_THROWS_WITH(serial_equivalence<comm::Thread>(task, samples(), twice, 2), Contains("do not take each share of the data once"));
}

TEST_CASE("serial_equivalence rejects a plan in which no rank takes the last share", "[testing][equivalence]") {
  const Changed lost{[](plan::Plan& plan, plan::RankInWorld at) { plan.share = {at.rank, at.size + 1}; }};
  CHECK_THROWS_WITH(serial_equivalence<comm::Thread>(task, samples(), lost, 2), Contains("do not take each share of the data once"));
}

TEST_CASE("serial_equivalence fails if ranks see different batches", "[testing][equivalence]") {
  // Each thread makes its own batch, and so does each rank of each run.
  const pdp::testing::Batches<std::int32_t> batches = [](int) {
    static thread_local const int own = [] {
      static std::atomic<int> threads{0};
      return threads++;
    }();
    pdp::testing::GlobalBatch<std::int32_t> batch{pdp::testing::normal(32 * 6, own), std::vector<std::int32_t>(32, own % 3)};
    return batch;
  };
  const Equivalence report = serial_equivalence<comm::Thread>(task, batches, strategy::DataParallel{}, 2);
  CHECK_FALSE(report);
  CHECK_THAT(report.text(), StartsWith("step 0: the loss is ") && Contains(", but that of Single is ") && Contains(", allowed "));
}

TEST_CASE("serial_equivalence fails if the loss is the mean over each rank's own rows", "[testing][equivalence]") {
  const auto report = serial_equivalence<comm::Thread>(own_mean_task, samples(), strategy::DataParallel{}, 3);
  CHECK_FALSE(report);
  CHECK_THAT(report.text(), StartsWith("step 1: "));  // the loss of step 0 comes before the first update
  CHECK(serial_equivalence<comm::Thread>(own_mean_task, samples(), strategy::DataParallel{}, 1));
}

TEST_CASE("serial_equivalence throws PlanError for a plan without reductions", "[testing][equivalence]") {
  const Changed forgetful{[](plan::Plan& plan, plan::RankInWorld) {
    std::erase_if(plan.step, [](const plan::Instruction& i) { return i.op == plan::Op::reduce_start || i.op == plan::Op::reduce_wait; });
  }};
  CHECK_THROWS_AS(serial_equivalence<comm::Thread>(task, samples(), forgetful, 2), pdp::PlanError);
}

TEST_CASE("serial_equivalence throws PlanError for a plan with a wrong unit or micro-batch", "[testing][equivalence]") {
  using plan::Op;
  using Change = std::function<void(plan::Plan&, plan::RankInWorld)>;  // a strategy must be assignable, which a lambda is not
  for (const Op op : {Op::reduce_start, Op::reduce_wait, Op::update}) {
    const Changed wrong_unit{
        Change{[op](plan::Plan& plan, plan::RankInWorld) { std::ranges::find(plan.step, op, &plan::Instruction::op)->unit = 1; }}};
    CHECK_THROWS_AS(serial_equivalence<comm::Thread>(task, samples(), wrong_unit, 2), pdp::PlanError);
  }
  for (const Op op :
       {Op::forward, Op::loss, Op::send_start, Op::send_wait, Op::receive_start, Op::receive_wait, Op::backward_input, Op::backward_weight})
    for (const int rank : {0, 1}) {
      const Changed swapped{Change{[op, rank](plan::Plan& plan, plan::RankInWorld at) {
        plan = strategy::Pipeline<plan::GPipe>{.micro_batches = 2}.plan(nn::outline(model, pdp::Shape{6}), at);
        const auto found = std::ranges::find(plan.step, op, &plan::Instruction::op);
        if (at.rank == rank && found != plan.step.end()) found->micro_batch = static_cast<std::int16_t>(1 - found->micro_batch);
      }}};
      const bool is_there = !(op == Op::loss && rank == 0) && !(op == Op::backward_input && rank == 0);
      CAPTURE(name(op), rank);
      if (is_there) CHECK_THROWS_AS(serial_equivalence<comm::Thread>(task, samples(), swapped, 2), pdp::PlanError);
    }
}

TEST_CASE("serial_equivalence rejects a plan whose ranks reduce in groups of one rank", "[testing][equivalence]") {
  const Changed apart{[](plan::Plan& plan, plan::RankInWorld at) {
    plan.groups = {{.color = at.rank, .key = 0}};
    for (plan::Unit& unit : plan.units) unit.group = 1;
    for (plan::Instruction& i : plan.step)
      if (i.op == plan::Op::reduce_start || i.op == plan::Op::reduce_wait) i.group = 1;
  }};
  CHECK_THROWS_WITH(serial_equivalence<comm::Thread>(task, samples(), apart, 2), Contains("do not take each share of the data once"));
}

TEST_CASE("Equivalence is strict in the first steps and then allows the drift of the control run", "[testing][equivalence]") {
  const std::size_t steps = 30;
  const std::vector<double> single(steps, 1.0);
  std::vector<double> control = single, strategy = single;
  const EquivalenceOptions options{.strict_steps = 20, .tolerance = 1e-5, .drift_factor = 10};
  const auto report = [&] { return Equivalence{single, control, {strategy, strategy}, options}; };
  CHECK(report());

  control[22] = 1 + 4e-5;  // from here on 4e-4 is allowed
  strategy[25] = 1 - 3.9e-4;
  CHECK(report());
  CHECK(report().allowed()[21] == 1e-5);
  CHECK(report().allowed()[22] == Approx(4e-4));
  strategy[25] = 1 - 4.1e-4;
  CHECK_FALSE(report());
  CHECK_THAT(report().text(),
             StartsWith("step 25: the loss is 0.99959, but that of Single is 1;") && Contains("(the control run differs by 0)"));
  strategy[25] = 1;

  strategy[21] = 1 + 2e-5;  // the control run has not drifted yet
  CHECK_FALSE(report());
  strategy[21] = 1;
  control[3] = 2;  // drift of the control run allows nothing in the first steps
  strategy[19] = 1 + 2e-5;
  CHECK_FALSE(report());
  CHECK_THAT(report().text(), StartsWith("step 19: "));
}

TEST_CASE("Equivalence fails if a loss is NaN or differs between ranks", "[testing][equivalence]") {
  const std::vector<double> fine{1, 1}, nan{1, std::nan("")}, other{1, 1.0000001};
  const auto text = [](const auto& single, const auto& strategy, const auto& of_rank_1) {
    const Equivalence report{single, single, {strategy, of_rank_1}, {}};
    CHECK_FALSE(report);
    return report.text();
  };
  CHECK_THAT(text(fine, nan, nan), StartsWith("step 1: the loss is nan"));
  CHECK_THAT(text(nan, fine, fine), Contains("step 1: the loss of Single is nan"));
  CHECK_THAT(text(fine, fine, other), Contains("step 1: rank 1 reports a loss of 1.0000001, but rank 0 one of 1"));
}

TEST_CASE("serial_equivalence needs the input option for a model of any width", "[testing][equivalence]") {
  constexpr pdp::Task any{nn::Sequential{nn::Tanh{}}, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.2f}};
  CHECK_THROWS_WITH(serial_equivalence<comm::Thread>(any, samples(), strategy::DataParallel{}, 1), Contains("set input to theirs"));
  CHECK(serial_equivalence<comm::Thread>(any, samples(), strategy::DataParallel{}, 2, {.steps = 3, .input = pdp::Shape{6}}));
}
