#include <pdp/comm/shm.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/concat.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/group_norm.hpp>
#include <pdp/nn/head_parallel_attention.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multi_head_attention.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/positions.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/sum.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/describe.hpp>
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

/// Tensor parallelism inside the blocks of Residual, Sum and Concat, and of convolutions, attention and embeddings.
namespace divided_blocks_test {

namespace strategy = pdp::strategy;
namespace plan = pdp::plan;
using pdp::Index, pdp::Shape, pdp::comm::Thread;
using Schedule = strategy::OneForwardOneBackward;

namespace {

constexpr Index positions = 5, vocabulary = 12, width = 16;

/// A transformer with dropout in divided and undivided places.
auto transformer() {
  using namespace pdp::nn;
  return Sequential{
      Embedding{vocabulary, width},
      LearnedPositions{positions, width},
      Residual{Sequential{LayerNorm{width}, MultiHeadAttention{width, 8, {.causal = true, .key_heads = 4, .rotary = 100}}, Dropout{0.2f}}},
      Residual{Sequential{LayerNorm{width}, Linear{width, 32}, Gelu{}, Dropout{0.2f}, Linear{32, width}, Dropout{0.2f}}},
      Residual{MultiHeadAttention{width, 4}},
      LayerNorm{width},
      Linear{width, vocabulary}};
}
pdp::data::InMemory<std::int32_t, std::int32_t> sentences(Index count) {
  std::vector<std::int32_t> x, y;
  for (Index i = 0; i < count * positions; ++i) {
    x.push_back(static_cast<std::int32_t>(i * i % 7919 % vocabulary));
    y.push_back(static_cast<std::int32_t>((x.back() + i % positions) % vocabulary));
  }
  return {Shape{positions}, x, y, Shape{positions}};
}
auto task_of_sentences() { return pdp::Task{transformer(), pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.05f, .momentum = 0.9f}}; }

/// A convolutional network with branches inside each other.
auto network(bool per_micro_batch = false) {
  using namespace pdp::nn;
  const auto convolution = [](Index in, Index out, bool bias = true) { return Conv2d{in, out, 3, {.padding = 1, .bias = bias}}; };
  const auto norm = [=](Index channels) { return BatchNorm{.channels = channels, .per_micro_batch = per_micro_batch}; };
  return Sequential{convolution(1, 4),
                    GroupNorm{4, 4},
                    Dropout{0.2f},
                    MaxPool2d{2},
                    convolution(4, 4),
                    Residual{Sequential{convolution(4, 8, false), norm(8), Relu{}, Dropout{0.2f}, convolution(8, 4), Residual{norm(4)}}},
                    Sum{Sequential{convolution(4, 4), Relu{}, convolution(4, 6)},
                        Sequential{Residual{Sequential{convolution(4, 4), Tanh{}, convolution(4, 4)}}, Conv2d{4, 6, 1}}},
                    Concat{Sequential{convolution(6, 8), Relu{}, convolution(8, 2)}, Conv2d{6, 3, 1}},
                    AdaptiveAvgPool2d{1},
                    Flatten{},
                    Linear{5, 16},
                    Relu{},
                    Dropout{0.2f},
                    Linear{16, 8},
                    Tanh{},
                    Linear{8, 4}};
}
pdp::data::InMemory<std::int32_t> images(Index count) {
  std::vector<std::int32_t> y;
  for (Index i = 0; i < count; ++i) y.push_back(static_cast<std::int32_t>(i % 4));
  return {Shape{1, 6, 4}, support::normal(count * 24, 8), y};
}
auto task_of_images(bool per_micro_batch = false) {
  return pdp::Task{network(per_micro_batch), pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.05f, .momentum = 0.9f}};
}

struct Way {
  int ranks;
  strategy::AnyStrategy strategy;
};
std::vector<Way> ways(int micro_batches) {
  using Hybrid = strategy::Hybrid<Schedule>;
  return {{2, strategy::TensorParallel{micro_batches}},
          {4, strategy::TensorParallel{micro_batches}},
          {4, Hybrid{.mesh = {.data = 2, .tensor = 2}, .micro_batches = micro_batches}},
          {8, Hybrid{.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = micro_batches}},
          {4, Hybrid{.mesh = {.pipeline = 2, .tensor = 2}, .micro_batches = micro_batches, .recompute = true}}};
}

template <class Comm, class Task, class Data>
void check(const Task& task, const Data& set, const Shape& input, const Way& way, const plan::GradientPolicy& gradient = {}) {
  INFO(way.ranks << " ranks");
  const auto report = pdp::testing::serial_equivalence<Comm>(
      task, set, way.strategy, way.ranks,
      {.steps = 10, .global_batch = 9, .input = input, .strict_steps = 4, .tolerance = 1e-4, .gradient = gradient});
  INFO(report.text());
  CHECK(report);
}

/// Returns all parameters, the loss of an evaluation and some outputs after some steps.
template <class Task, class Data>
std::vector<float> trained(const Task& task, const Data& set, const Shape& input, const Way& way) {
  return pdp::testing::ranks<Thread>(way.ranks,
                                     [&](Thread& world) {
                                       pdp::Trainer trainer{world, way.strategy, task, {.global_batch = 9, .input = input}};
                                       trainer.fit(set, {.epochs = 1, .progress = false}, [](const pdp::Epoch&) {});
                                       std::vector<float> found;
                                       for (const auto& tensor : trainer.parameters())
                                         found.insert(found.end(), tensor.values.begin(), tensor.values.end());
                                       found.push_back(static_cast<float>(trainer.evaluate(set).mean_loss()));
                                       std::vector<pdp::data::SampleOf<Data>> x(pdp::as_size(7 * input.elements()));
                                       std::vector<typename Data::Target> y(pdp::as_size(7 * set.target_shape().elements()));
                                       set.gather(std::vector<Index>{0, 1, 2, 3, 4, 5, 6}, x, y);
                                       const std::vector<float> outputs = trainer.predict(x);
                                       found.insert(found.end(), outputs.begin(), outputs.end());
                                       return found;
                                     })
      .front();
}

}  // namespace

TEST_CASE("A transformer divided by heads, columns and vocabulary has the losses of serial training", "[parallel][tensor]") {
  const auto set = sentences(49);  // the last batch is short
  for (const int micro_batches : {1, 2})
    for (const Way& way : ways(micro_batches)) check<Thread>(task_of_sentences(), set, Shape{positions}, way);
  check<pdp::comm::Shm>(task_of_sentences(), set, Shape{positions}, {2, strategy::TensorParallel{}});
}

TEST_CASE("A network divided by channels has the losses of serial training", "[parallel][tensor]") {
  const auto set = images(46);
  for (const Way& way : ways(1)) check<Thread>(task_of_images(), set, Shape{1, 6, 4}, way);
  check<pdp::comm::Shm>(task_of_images(), set, Shape{1, 6, 4}, {2, strategy::TensorParallel{}});
}

TEST_CASE("A transformer that says itself how it is divided has the losses of serial training", "[parallel][tensor]") {
  using namespace pdp::nn;
  const pdp::Task task{
      Sequential{
          Embedding{vocabulary, width}, LearnedPositions{positions, width},
          Residual{Sequential{LayerNorm{width}, Replicate{}, HeadParallelAttention{width, 4}, AllReduce{}, Dropout{0.2f}}},
          Residual{Sequential{LayerNorm{width}, Replicate{}, ColumnParallel{width, 32}, Gelu{}, RowParallel{32, width}, AllReduce{}}},
          LayerNorm{width}, Linear{width, vocabulary}},
      pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.05f, .momentum = 0.9f}};
  for (const Way& way : ways(1)) check<Thread>(task, sentences(49), Shape{positions}, way);
}

TEST_CASE("The norm of the gradient counts each parameter of divided blocks once", "[parallel][tensor]") {
  for (const Way& way : ways(1)) {
    check<Thread>(task_of_sentences(), sentences(49), Shape{positions}, way, {.clip_norm = 0.05});
    check<Thread>(task_of_images(), images(46), Shape{1, 6, 4}, way, {.clip_norm = 0.05});
  }
}

TEST_CASE("Divided blocks with the statistics of micro-batches train like as many micro-batches on one rank", "[parallel][tensor]") {
  const auto set = images(40);
  const std::vector<float> expected = trained(task_of_images(true), set, Shape{1, 6, 4}, {1, strategy::Single{2}});
  for (const Way& way :
       {Way{2, strategy::TensorParallel{2}}, Way{4, strategy::Hybrid<Schedule>{.mesh = {.pipeline = 2, .tensor = 2}, .micro_batches = 2}}})
    CHECK(support::difference(trained(task_of_images(true), set, Shape{1, 6, 4}, way), expected) < 1e-3);
}

TEST_CASE("Divided blocks have the parameters, evaluations and predictions of serial training", "[parallel][tensor]") {
  const auto compare = [](const auto& task, const auto& set, const Shape& input) {
    const std::vector<float> expected = trained(task, set, input, {1, strategy::Single{}});
    for (const Way& way : ways(1)) {
      INFO(way.ranks << " ranks");
      CHECK(support::difference(trained(task, set, input, way), expected) < 1e-3);
    }
  };
  compare(task_of_sentences(), sentences(40), Shape{positions});
  compare(task_of_images(), images(40), Shape{1, 6, 4});
}

TEST_CASE("describe counts the sums inside divided blocks", "[parallel][tensor][verify]") {
  using namespace pdp::nn;
  const Sequential model{Residual{Sequential{Linear{8, 16}, Tanh{}, Linear{16, 8}}}};
  const Outline outline = pdp::nn::outline(Divided{model, {0, 2}, Output::whole}, Shape{8});
  const auto plans = strategy::plans(strategy::TensorParallel{}, outline, 2);
  const auto one = plan::describe(outline, plans, {.global_batch = 5});
  // A sum of 5 x 8 floats forward, one backward, and the totals.
  CHECK(one.ranks[0].calls == 3);
  CHECK(one.ranks[0].sent == 2 * 5 * 8 * 4);
}

TEST_CASE("Verification finds sums inside divided blocks that are missing, early or over another group", "[parallel][tensor][verify]") {
  using namespace pdp::plan;
  const pdp::nn::Outline outline = pdp::nn::outline(pdp::nn::Divided{network(), {0, 2}, pdp::nn::Output::may_be_sharded}, Shape{1, 6, 4});
  const std::vector<Plan> sound = strategy::plans(strategy::Hybrid<Schedule>{.mesh = {.data = 2, .tensor = 2}}, outline, 4);
  REQUIRE(explain(verify(outline, sound), sound) == "the plan is sound");
  const auto refuse = [&](const std::string& words, Instructions Plan::*list, const std::function<void(Instructions&)>& change) {
    std::vector<Plan> altered = sound;
    for (Plan& each : altered) change(each.*list);
    const Verdict verdict = verify(outline, altered);
    INFO(words << ": " << explain(verdict, altered));
    CHECK_FALSE(verdict);
    CHECK_THAT(explain(verdict, altered), Contains(words));
  };
  const int tensor_group = sound.front().tensor_group;
  const auto exchange = [&](Instructions& list, Tensor tensor) {
    const auto found = std::ranges::find_if(
        list, [&](const Instruction& i) { return i.op == Op::sum_in_pause && i.group == tensor_group && i.tensor == tensor; });
    REQUIRE(found != list.end());
    return found;
  };
  for (const auto list : {&Plan::step, &Plan::evaluate}) {
    refuse("added up", list, [&](Instructions& all) { all.erase(exchange(all, Tensor::activation)); });
    refuse("uses a group other than", list, [&](Instructions& all) { exchange(all, Tensor::activation)->group = 0; });
    refuse("adds up sums that are not computed", list, [&](Instructions& all) {
      const auto at = exchange(all, Tensor::activation);
      std::iter_swap(at, at - 1);
    });
  }
  refuse("added up", &Plan::step, [&](Instructions& all) { all.erase(exchange(all, Tensor::gradient)); });
  refuse("uses a group other than", &Plan::step, [&](Instructions& all) { exchange(all, Tensor::gradient)->group = 0; });
}

}  // namespace divided_blocks_test
