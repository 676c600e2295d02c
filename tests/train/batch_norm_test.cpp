#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/sum.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/verify.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

/// Models that normalise with the statistics of the batch.
namespace batch_norm_training_test {

namespace strategy = pdp::strategy;
using pdp::Index, pdp::Shape, pdp::comm::Self, pdp::comm::Thread;
using Schedule = strategy::OneForwardOneBackward;

namespace {

auto model(bool per_micro_batch = false) {
  using namespace pdp::nn;
  const auto convolution = [](Index in, Index out) { return Conv2d{in, out, 3, {.padding = 1, .bias = false}}; };
  const auto norm = [=](Index channels) { return BatchNorm{.channels = channels, .per_micro_batch = per_micro_batch}; };
  return Sequential{norm(1),  // before the first parameters of products
                    convolution(1, 2),
                    norm(2),
                    Tanh{},
                    Residual{Sequential{convolution(2, 2), norm(2), Tanh{}, convolution(2, 2), norm(2)}},
                    Sum{Sequential{convolution(2, 3), norm(3), Tanh{}, convolution(3, 3), norm(3)}, Sequential{Conv2d{2, 3, 1}, norm(3)}},
                    Flatten{},
                    Linear{36, 8},
                    Tanh{},
                    Linear{8, 4},
                    norm(4)};
}
auto task(bool per_micro_batch = false) {
  return pdp::Task{model(per_micro_batch), pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.05f, .momentum = 0.9f}};
}
pdp::data::InMemory<std::int32_t> samples(Index count) {
  std::vector<std::int32_t> y;
  for (Index i = 0; i < count; ++i) y.push_back(static_cast<std::int32_t>(i % 4));
  return {Shape{1, 3, 4}, support::normal(count * 12, 8), y};
}

struct Way {
  std::string name;
  int ranks;
  strategy::AnyStrategy strategy;
};
std::vector<Way> ways() {
  std::vector<Way> all;
  for (const int ranks : {2, 3, 4}) {
    all.push_back({"data", ranks, strategy::DataParallel{}});
    for (const int stage : {1, 2, 3}) all.push_back({"zero " + std::to_string(stage), ranks, strategy::Zero{.stage = stage}});
    all.push_back({"pipeline", ranks, strategy::Pipeline<Schedule>{.micro_batches = 1}});
    all.push_back({"recomputing pipeline", ranks, strategy::Pipeline<Schedule>{.micro_batches = 1, .recompute = true}});
  }
  all.push_back({"zero bubble", 2, strategy::Pipeline<strategy::ZeroBubble>{.micro_batches = 1}});
  all.push_back({"tensor", 2, strategy::TensorParallel{}});
  all.push_back({"hybrid", 8, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = 1}});
  return all;
}

/// Returns the buffers after some steps.
std::vector<float> buffers(const strategy::AnyStrategy& strategy, int ranks) {
  const auto set = samples(26);  // the last batch is short
  return pdp::testing::ranks<Thread>(ranks,
                                     [&](Thread& world) {
                                       pdp::Trainer trainer{world, strategy, task(), {.global_batch = 8, .input = Shape{1, 3, 4}}};
                                       trainer.fit(set, {.epochs = 2, .progress = false}, [](const pdp::Epoch&) {});
                                       std::vector<float> found;
                                       for (const auto& tensor : trainer.parameters())
                                         if (tensor.name.find("running") != std::string::npos)
                                           found.insert(found.end(), tensor.values.begin(), tensor.values.end());
                                       found.push_back(static_cast<float>(trainer.evaluate(set).mean_loss()));
                                       return found;
                                     })
      .front();
}

}  // namespace

TEST_CASE("A model with BatchNorm has the losses of serial training under every strategy with one micro-batch", "[train][batch_norm]") {
  const auto set = samples(43);  // the last batch has three rows, so some ranks have none
  for (const Way& way : ways()) {
    INFO(way.name << " on " << way.ranks << " ranks");
    const auto report = pdp::testing::serial_equivalence<Thread>(
        task(), set, way.strategy, way.ranks,
        {.steps = 12, .global_batch = 10, .input = Shape{1, 3, 4}, .strict_steps = 4, .tolerance = 1e-4});
    INFO(report.text());
    CHECK(report);
  }
}

TEST_CASE("Running statistics are those of serial training under every strategy", "[train][batch_norm]") {
  const std::vector<float> expected = buffers(strategy::Single{}, 1);
  CHECK(expected.size() > 20);
  for (const Way& way : ways()) {
    INFO(way.name << " on " << way.ranks << " ranks");
    CHECK(support::difference(buffers(way.strategy, way.ranks), expected) < 1e-3);
  }
}

TEST_CASE("With the statistics of micro-batches, pipelines have the losses of as many micro-batches on one rank", "[train][batch_norm]") {
  const auto set = samples(43);  // the last batch has short and empty micro-batches
  const auto losses = [&](const strategy::AnyStrategy& strategy, int ranks) {
    return pdp::testing::ranks<Thread>(ranks,
                                       [&](Thread& world) {
                                         pdp::Trainer trainer{world, strategy, task(true), {.global_batch = 12, .input = Shape{1, 3, 4}}};
                                         std::vector<double> found;
                                         trainer.fit(
                                             set, {.epochs = 2, .progress = false}, [](const pdp::Epoch&) {},
                                             [&](std::int64_t, const auto& totals) { found.push_back(totals.mean_loss()); });
                                         return found;
                                       })
        .front();
  };
  const std::vector<double> expected = losses(strategy::Single{.accumulate = 3}, 1);
  REQUIRE(expected.size() == 8);
  CHECK(support::difference(losses(strategy::Pipeline<Schedule>{.micro_batches = 3}, 3), expected) < 1e-4);
  CHECK(support::difference(losses(strategy::Pipeline<Schedule>{.micro_batches = 3, .recompute = true}, 2), expected) < 1e-4);
  CHECK(support::difference(losses(strategy::Pipeline<strategy::GPipe>{.micro_batches = 3, .join_weights = 3}, 2), expected) < 1e-4);
  CHECK(support::difference(losses(strategy::Pipeline<strategy::ZeroBubble>{.micro_batches = 3}, 2), expected) < 1e-4);
  CHECK(losses(strategy::Zero{.stage = 3, .accumulate = 2}, 2).size() == expected.size());
}

TEST_CASE("A Predictor has the outputs of a trainer with BatchNorm", "[train][batch_norm]") {
  Self self;
  pdp::Trainer trainer{self, strategy::Single{}, task(), {.global_batch = 8, .input = Shape{1, 3, 4}}};
  trainer.fit(samples(40), {.epochs = 1, .progress = false}, [](const pdp::Epoch&) {});
  const std::vector<float> x = support::normal(3 * 12, 5);
  const pdp::Predictor predictor{trainer.task().model, trainer.parameters(), "the trainer", {.rows = 8, .input = Shape{1, 3, 4}}};
  CHECK(predictor.predict(x) == trainer.predict(x));
}

TEST_CASE("BatchNorm refuses several micro-batches unless it may take their statistics", "[train][batch_norm]") {
  Self self;
  const auto train = [&](bool per_micro_batch) {
    pdp::Trainer trainer{self, strategy::Single{.accumulate = 2}, task(per_micro_batch), {.global_batch = 8, .input = Shape{1, 3, 4}}};
    return trainer.fit(samples(24), {.epochs = 3, .progress = false}, [](const pdp::Epoch&) {}).back().loss;
  };
  CHECK_THROWS_WITH(train(false),
                    StartsWith("layer 0 of the model (counted from 0) normalises with the mean and variance of the whole batch") &&
                        Contains("BatchNorm{.per_micro_batch = true}"));
  CHECK(train(true) > 0);
}

TEST_CASE("BatchNorm refuses a batch of a single value of a channel", "[train][batch_norm]") {
  const auto train = [](pdp::comm::Thread& world) {
    const pdp::Task task{pdp::nn::Sequential{pdp::nn::Linear{4, 3}, pdp::nn::BatchNorm{3}, pdp::nn::Linear{3, 2}},
                         pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
    const pdp::data::InMemory<std::int32_t> set{Shape{4}, support::normal(5 * 4, 1), std::vector<std::int32_t>(5)};
    pdp::Trainer trainer{world, strategy::DataParallel{}, task, {.global_batch = 4}};
    CHECK_THROWS_WITH(trainer.fit(set, {.epochs = 1, .progress = false}, [](const pdp::Epoch&) {}),
                      Contains("layer 1 of the model (counted from 0)") && Contains("the batch has a single row"));
    CHECK(trainer.steps() == 0);  // although only the last batch is too small
    const std::vector<float> row(4);
    const std::vector<std::int32_t> target(1);
    const bool has_row = world.rank() == 0;
    CHECK_THROWS_WITH(trainer.step(std::span{row}.first(has_row ? 4 : 0), std::span{target}.first(has_row ? 1 : 0)),
                      Contains("the batch has a single row"));
    return 0;
  };
  pdp::testing::ranks<Thread>(2, train);
}

TEST_CASE("Verification finds sums over the batch that are missing, early, doubled or over another group", "[verify][batch_norm]") {
  using namespace pdp::plan;
  const pdp::nn::Outline outline = pdp::nn::outline(model(), Shape{1, 3, 4});
  const std::vector<Plan> sound = strategy::plans(strategy::DataParallel{}, outline, 2);
  REQUIRE(verify(outline, sound));
  const auto refuse = [&](const std::string& words, const std::function<void(Instructions&)>& change) {
    std::vector<Plan> altered = sound;
    for (Plan& plan : altered) change(plan.step);
    const Verdict verdict = verify(outline, altered);
    INFO(words << ": " << explain(verdict, altered));
    CHECK_FALSE(verdict);
    CHECK_THAT(explain(verdict, altered), Contains(words));
  };
  const auto first = [](Instructions& list, Op op) {
    return std::ranges::find_if(list, [op](const Instruction& i) { return i.op == op; });
  };
  refuse("runs a layer before its sums are added up over the ranks",
         [&](Instructions& list) { list.erase(first(list, Op::sum_in_pause)); });
  refuse("adds up sums that are not computed", [&](Instructions& list) { list.erase(first(list, Op::forward_to_pause)); });
  refuse("adds up sums that are not computed", [&](Instructions& list) { list.erase(first(list, Op::backward_to_pause)); });
  refuse("is computed twice",
         [&](Instructions& list) { list.insert(first(list, Op::forward_to_pause), *first(list, Op::forward_to_pause)); });
  refuse("adds up sums that are not computed",
         [&](Instructions& list) { list.insert(first(list, Op::sum_in_pause), *first(list, Op::sum_in_pause)); });
  refuse("names a pause that the layer does not have", [&](Instructions& list) { first(list, Op::forward_to_pause)->pause = 7; });
  refuse("names a pause that the layer does not have", [&](Instructions& list) { first(list, Op::sum_in_pause)->first = 1; });
  refuse("comes while forward of the layer is not complete", [&](Instructions& list) {
    const Instruction again = *first(list, Op::forward_to_pause);
    list.insert(first(list, Op::loss), again);
  });
  refuse("which are its gradients", [&](Instructions& list) {
    std::erase_if(list, [](const Instruction& i) {
      const bool is_sum = i.op == Op::backward_to_pause || (i.op == Op::sum_in_pause && i.tensor == pdp::plan::Tensor::gradient);
      return i.first == 0 && (is_sum || i.op == Op::backward_input);
    });
  });
  std::vector<Plan> evaluating = sound;
  evaluating[0].evaluate.insert(evaluating[0].evaluate.begin(), to_pause(Op::forward_to_pause, 0, 0, 0));
  CHECK_THAT(explain(verify(outline, evaluating), evaluating), Contains("pauses in an evaluation, in which the layer adds up nothing"));
  std::vector<Plan> one_sided = sound;
  one_sided[1].step.erase(first(one_sided[1].step, Op::sum_in_pause));
  CHECK_FALSE(verify(outline, one_sided));
}

}  // namespace batch_norm_training_test
