#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/huber_loss.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multi_head_attention.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/positions.hpp>
#include <pdp/nn/reshape.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "support.hpp"
#include "train/ways.hpp"

/// Training in bfloat16 on CPUs.
namespace bfloat16_test {

using pdp::Index, pdp::MixedBfloat16, pdp::Shape, pdp::comm::Thread, pdp::strategy::AnyStrategy;

namespace {

auto transformer() {
  using namespace pdp::nn;
  constexpr Index width = 16;
  return pdp::Task{Sequential{Embedding{13, width}, LearnedPositions{6, width},
                              Residual{Sequential{LayerNorm{width}, MultiHeadAttention{width, 4, {.causal = true}}, Dropout{0.1f}}},
                              Residual{Sequential{LayerNorm{width}, Linear{width, 2 * width}, Gelu{}, Linear{2 * width, width}}},
                              LayerNorm{width}, Linear{width, 13}},
                   pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 0.01f}};
}
pdp::data::InMemory<std::int32_t, std::int32_t> tokens() {
  std::vector<std::int32_t> x, y;
  for (int i = 0; i < 60 * 6; ++i) x.push_back(i * i * 7 % 13), y.push_back((x.back() + 3) % 13);
  return {Shape{6}, x, y, Shape{6}};
}

auto convolutional() {
  using namespace pdp::nn;
  return pdp::Task{Sequential{Conv2d{1, 6, 3, {.padding = 1}}, Tanh{}, Residual{Sequential{Conv2d{6, 6, 3, {.padding = 1}}, Tanh{}}},
                              MaxPool2d{2}, Conv2d{6, 4, 2}, Flatten{}, Linear{4 * 2, 4}},
                   pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 0.01f}};
}
pdp::data::InMemory<std::int32_t> images() {
  const std::vector<float> x = support::normal(60 * 24, 42);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 24) classes.push_back(static_cast<std::int32_t>(std::max_element(row, row + 4) - row));
  return {Shape{1, 4, 6}, x, classes};
}

/// The losses of all steps, that of an evaluation, and the parameters, as rank 0 has them.
struct Course {
  std::vector<double> losses;
  std::vector<pdp::checkpoint::Tensor> parameters;
};

template <class TaskType, class Data, class P>
Course train(const TaskType& task, const Data& data, const AnyStrategy& strategy, int ranks, P precision) {
  return pdp::testing::ranks<Thread>(
             ranks,
             [&](Thread& world) {
               pdp::Trainer trainer{world, strategy, task, {.global_batch = 20, .seed = 3, .input = data.sample_shape()}, precision};
               Course course;
               trainer.fit(
                   data, {.epochs = 6, .progress = false}, [](const pdp::Epoch&) {},
                   [&](std::int64_t, const auto& totals) { course.losses.push_back(totals.mean_loss()); });
               course.losses.push_back(trainer.evaluate(data).mean_loss());
               course.parameters = trainer.parameters();
               trainer.check_parameters();
               return course;
             })
      .front();
}

/// Returns whether all parameters have no more digits than bfloat16.
bool are_rounded(const Course& course) {
  for (const auto& tensor : course.parameters)
    for (const float value : tensor.values)
      if (static_cast<float>(pdp::BFloat16{value}) != value) return false;
  return true;
}

template <class TaskType, class Data>
void check(const TaskType& task, const Data& data) {
  const Course expected = train(task, data, pdp::strategy::Single{}, 1, pdp::Float32{});
  const Course single = train(task, data, pdp::strategy::Single{}, 1, MixedBfloat16{});
  CHECK(support::difference(single.losses, expected.losses) < 0.03);
  CHECK(support::difference(single.losses, expected.losses) > 0);
  CHECK(single.losses.back() < 0.9 * single.losses.front());
  CHECK(!are_rounded(single));
  for (const auto& way : ways_test::ways()) {
    INFO(way.name << " on " << way.ranks << " ranks");
    const Course found = train(task, data, way.strategy, way.ranks, MixedBfloat16{});
    CHECK(support::difference(found.losses, expected.losses) < 0.03);
  }
}

}  // namespace

TEST_CASE("A transformer in bfloat16 has losses within 0.03 of float under every strategy, and float parameters", "[train]") {
  check(transformer(), tokens());
}

TEST_CASE("A convolutional network in bfloat16 has losses within 0.03 of float under every strategy, and float parameters", "[train]") {
  check(convolutional(), images());
}

TEST_CASE("A model with BatchNorm and a regression have losses in bfloat16 within 0.03 of float", "[train]") {
  namespace nn = pdp::nn;
  const nn::Sequential model{nn::Linear{5, 12}, nn::BatchNorm{12}, nn::Silu{}, nn::Linear{12, 3}};
  const pdp::Task task{model, pdp::loss::HuberLoss{}, pdp::optim::Adam{.lr = 0.02f}};
  const std::vector<float> x = support::normal(60 * 5, 1);
  std::vector<float> y;
  for (std::size_t i = 0; i + 5 <= x.size(); i += 5) y.insert(y.end(), {x[i] + x[i + 1], x[i + 2] - 1, x[i + 3] * x[i + 4]});
  const pdp::data::InMemory<float> set{Shape{5}, x, y, Shape{3}};
  const Course expected = train(task, set, pdp::strategy::Single{}, 1, pdp::Float32{});
  for (const int ranks : {1, 3}) {
    const Course found = train(task, set, pdp::strategy::DataParallel{}, ranks, MixedBfloat16{});
    CHECK(support::difference(found.losses, expected.losses) < 0.03);
    CHECK(found.losses.back() < 0.9 * found.losses.front());
  }
}

TEST_CASE("A trainer in bfloat16 returns parameters as they were set, and predicts within 0.05 of float", "[train]") {
  const auto task = convolutional();
  pdp::comm::Self self, other;
  const pdp::TrainerOptions options{.global_batch = 16, .seed = 9, .input = Shape{1, 4, 6}};
  pdp::Trainer in_float{self, pdp::strategy::Single{}, task, options};
  pdp::Trainer in_bfloat16{other, pdp::strategy::Zero{.stage = 3}, task, options, MixedBfloat16{}};
  const auto parameters = in_float.parameters();
  in_bfloat16.set_parameters(parameters, "memory");
  const auto found = in_bfloat16.parameters();
  REQUIRE(found.size() == parameters.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(pdp::testing::same_bits(found[i].values, parameters[i].values));
  const auto inputs = support::normal(37 * 24, 4);
  CHECK(support::difference(in_bfloat16.predict(inputs), in_float.predict(inputs)) < 0.05);
}

TEST_CASE("A training in bfloat16 continues to the bit from a checkpoint, also in the background", "[train]") {
  const auto task = transformer();
  const auto data = tokens();
  const auto run = [&](const AnyStrategy& strategy, int epochs, const std::filesystem::path& from, const std::filesystem::path& to) {
    return pdp::
        testing::
            ranks<Thread>(2, [&](Thread& world) {
              pdp::Trainer trainer{world, strategy, task, {.global_batch = 20, .seed = 3, .input = data.sample_shape()}, MixedBfloat16{}};
              if (!from.empty()) trainer.load(from);
              pdp::CheckpointOptions checkpoint;
              if (!to.empty()) checkpoint = {.directory = to, .every_steps = 3, .asynchronous = true, .keep = 0};
              Course course;
              trainer.fit(
                  data, {.epochs = epochs, .progress = false, .checkpoint = checkpoint}, [](const pdp::Epoch&) {},
                  [&](std::int64_t, const auto& totals) { course.losses.push_back(totals.mean_loss()); });
              course.parameters = trainer.parameters();
              return course;
            }).front();
  };
  const files::TemporaryFolder folder;
  const pdp::strategy::Zero zero{.stage = 3};
  const Course whole = run(zero, 2, {}, folder / "run"), rest = run(zero, 1, folder / "run/step-000003", {});
  CHECK(rest.losses == std::vector<double>(whole.losses.begin() + 3, whole.losses.end()));
  for (std::size_t i = 0; i < whole.parameters.size(); ++i)
    CHECK(pdp::testing::same_bits(rest.parameters.at(i).values, whole.parameters[i].values));
  const Course other = run(pdp::strategy::TensorParallel{}, 1, folder / "run/step-000003", {});
  CHECK(support::difference(other.losses, rest.losses) < 0.02);
}

TEST_CASE("A trainer in bfloat16 predicts with divided layers, and on two threads, within 0.05 of float", "[train]") {
  const auto task = convolutional();
  const auto inputs = support::normal(3000 * 24, 4);
  const auto predict = [&](const AnyStrategy& strategy, int ranks, int threads, auto precision) {
    const auto all = pdp::testing::ranks<Thread>(ranks, [&](Thread& world) {
      pdp::Trainer trainer{world, strategy, task, {.global_batch = 20, .seed = 9, .input = Shape{1, 4, 6}, .threads = threads}, precision};
      return trainer.predict(inputs);
    });
    return all.front();
  };
  const auto expected = predict(pdp::strategy::Single{}, 1, 1, pdp::Float32{});
  CHECK(support::difference(predict(pdp::strategy::TensorParallel{}, 2, 1, MixedBfloat16{}), expected) < 0.05);
  if (pdp::cpu::has_threads()) CHECK(support::difference(predict(pdp::strategy::Single{}, 1, 2, MixedBfloat16{}), expected) < 0.05);
}

}  // namespace bfloat16_test
