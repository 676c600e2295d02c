#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/augmented.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/positions.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <cstdint>
#include <vector>

#include "catch.hpp"
#include "train/ways.hpp"

/// Models whose samples are tokens.
namespace tokens_test {

using pdp::Index, pdp::Shape, pdp::comm::Self, pdp::comm::Thread;
using Set = pdp::data::InMemory<std::int32_t, std::int32_t>;

namespace {

constexpr Index positions = 5, vocabulary = 11;
constexpr pdp::Task task{pdp::nn::Sequential{pdp::nn::Embedding{vocabulary, 6}, pdp::nn::LearnedPositions{8, 6}, pdp::nn::Linear{6, 8},
                                             pdp::nn::Tanh{}, pdp::nn::Linear{8, 8}, pdp::nn::Tanh{}, pdp::nn::Linear{8, vocabulary}},
                         pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};

/// Samples whose target at each position is a function of the token and of the position.
Set samples(Index count) {
  std::vector<std::int32_t> x, y;
  for (Index i = 0; i < count * positions; ++i) {
    x.push_back(static_cast<std::int32_t>(i * i % 7919 % vocabulary));
    y.push_back(static_cast<std::int32_t>((x.back() + i % positions) % vocabulary));
  }
  return {Shape{positions}, x, y, Shape{positions}};
}
/// Returns the same with a wrong token in sample 9.
Set damaged(Index count) {
  const Set whole = samples(count);
  std::vector<Index> all;
  for (Index i = 0; i < count; ++i) all.push_back(i);
  std::vector<std::int32_t> x(pdp::as_size(count * positions)), y = x;
  whole.gather(all, x, y);
  x[9 * positions + 2] = vocabulary;
  return {Shape{positions}, x, y, Shape{positions}};
}

}  // namespace

TEST_CASE("A model of tokens has the losses of serial training under every strategy", "[train][tokens]") {
  const Set set = samples(46);  // the last batch is short
  for (const auto& way : ways_test::ways()) {
    INFO(way.name << " on " << way.ranks << " ranks");
    const auto report = pdp::testing::serial_equivalence<Thread>(
        task, set, way.strategy, way.ranks, {.steps = 15, .global_batch = 12, .input = Shape{positions}, .strict_steps = 15});
    INFO(report.text());
    CHECK(report);
  }
}

TEST_CASE("A model of tokens learns from fit() on ranks that each have a part", "[train][tokens]") {
  const auto accuracy = pdp::testing::ranks<Thread>(2, [&](Thread& world) {
    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, task, {.global_batch = 16, .input = Shape{positions}}};
    const pdp::data::PerRank part{samples(world.rank() == 0 ? 150 : 106)};
    const Set held_out = samples(30);
    trainer.fit(part, {.epochs = 30, .progress = false, .validation = &held_out}, [](const pdp::Epoch&) {});
    return trainer.evaluate(held_out).accuracy();
  });
  CHECK(accuracy.front() > 0.99);
  CHECK(accuracy.back() == accuracy.front());
}

TEST_CASE("step(), predict() and a Predictor take tokens", "[train][tokens]") {
  Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, task, {.global_batch = 4, .input = Shape{positions}}};
  const std::vector<std::int32_t> x{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, y{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const double first = trainer.step(x, y).mean_loss();
  CHECK(trainer.step(x, y).mean_loss() < first);
  const std::vector<float> outputs = trainer.predict(x);
  REQUIRE(outputs.size() == 2 * positions * vocabulary);
  const pdp::Predictor predictor{task.model, trainer.parameters(), "the trainer", {.rows = 4, .input = Shape{positions}}};
  CHECK(predictor.predict(x) == outputs);
  const std::vector<std::int32_t> wrong{0, 1, 2, 3, 4, 5, 6, 7, 8, 11};
  CHECK_THROWS_WITH(trainer.step(wrong, y), Contains("position 4 of row 1 of a batch is token 11, but the model has tokens 0 to 10"));
  CHECK_THROWS_WITH(trainer.predict(wrong), Contains("position 4 of row 1 of a batch is token 11"));
  CHECK_THROWS_WITH(predictor.predict(wrong), Contains("position 4 of row 1 of a batch is token 11"));
}

TEST_CASE("fit() and evaluate() name the sample of a token that is out of range", "[train][tokens]") {
  Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, task, {.global_batch = 4, .input = Shape{positions}}};
  const Set set = damaged(12);
  CHECK_THROWS_WITH(trainer.fit(set, {.epochs = 1, .shuffle = false, .progress = false}, [](const pdp::Epoch&) {}),
                    Contains("position 2 of sample 9 of the dataset (counted from 0), in step 2 is token 11"));
  CHECK_THROWS_WITH(trainer.evaluate(set),
                    Contains("position 2 of sample 9 of the dataset (counted from 0), in an evaluation is token 11"));
}

TEST_CASE("fit() refuses a validation set whose samples are numbers if the model takes tokens", "[train][tokens]") {
  Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, task, {.global_batch = 4, .input = Shape{positions}}};
  const pdp::data::InMemory<std::int32_t> numbers{Shape{positions}, std::vector<float>(positions), std::vector<std::int32_t>(positions),
                                                  Shape{positions}};
  CHECK_THROWS_WITH(
      trainer.fit(samples(8), {.epochs = 1, .progress = false, .validation = &numbers}, [](const pdp::Epoch&) {}),
      "the samples of the dataset are numbers (float), but the model takes tokens (std::int32_t); give a dataset with such samples");
}

TEST_CASE("Augmented changes tokens", "[train][tokens]") {
  const pdp::data::Augmented masked{samples(4), [](pdp::random::Key, std::span<std::int32_t> sample) { sample.front() = 0; }};
  std::vector<std::int32_t> x(positions), y(positions);
  masked.gather(std::vector<Index>{3}, x, y, pdp::data::TrainingEpoch{1, 0});
  CHECK(x.front() == 0);
}

}  // namespace tokens_test
