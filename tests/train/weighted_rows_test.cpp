#include <pdp/train/trainer.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/optimizers.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/epoch_run.hpp>

#include "catch.hpp"
#include "support.hpp"
#include "train/ways.hpp"

namespace weighted_rows_test {

namespace comm = pdp::comm;
namespace loss = pdp::loss;
namespace nn = pdp::nn;
namespace testing = pdp::testing;
using namespace pdp::strategy;
using pdp::Index;

namespace {

constexpr Index width = 5;
constexpr std::int32_t ignored = -100;
// [weights]
constexpr pdp::loss::WeightedCrossEntropy<4> weighted{.weights = {0.1f, 20, 0, 1}};
// [weights]
constexpr loss::WeightedCrossEntropy<4> smooth{.weights = weighted.weights, .ignore_index = ignored, .label_smoothing = 0.1};
constexpr pdp::Task classifier{nn::Sequential{nn::Linear{width, 8}, nn::Tanh{}, nn::Linear{8, 4}}, smooth, pdp::optim::Sgd{.lr = 0.1f}};

/// Rows whose weights differ between the shares of ranks. All rows of some steps have the weight 0.
testing::GlobalBatch<std::int32_t> batch_of(int step, Index rows = 13) {
  testing::GlobalBatch<std::int32_t> batch{support::normal(rows * width, 10 + step), {}};
  for (Index row = 0; row < rows; ++row)
    batch.targets.push_back(step == 3 ? 2 : row % 5 == 4 ? ignored : row > 8 ? 1 : static_cast<std::int32_t>((row * 3 + step) % 4));
  return batch;
}

/// Every kind of strategy, also with micro-batches.
std::vector<ways_test::Way> ways() {
  std::vector<ways_test::Way> all = ways_test::ways();
  all.push_back({"single, micro-batches", 1, Single{.accumulate = 3}});
  all.push_back({"data, micro-batches", 4, DataParallel{.accumulate = 2}});
  return all;
}

/// Returns the weighted mean of the loss of samples, from the logits that a trainer predicts.
template <class Trainer>
double mean_of(Trainer& trainer, const testing::GlobalBatch<std::int32_t>& batch) {
  const std::vector<float> outputs = trainer.predict(batch.x);
  double sum = 0, weights = 0;
  for (std::size_t row = 0; row < batch.targets.size(); ++row) {
    if (batch.targets[row] == ignored) continue;
    const std::span<const float> logits{outputs.data() + 4 * row, 4};
    double total = 0;
    for (const float each : logits) total += std::exp(static_cast<double>(each));
    for (std::size_t c = 0; c < 4; ++c) {
      const double wanted = 0.025 + (c == static_cast<std::size_t>(batch.targets[row]) ? 0.9 : 0);
      sum -= wanted * static_cast<double>(weighted.weights[c]) * (static_cast<double>(logits[c]) - std::log(total));
    }
    weights += smooth.weight(std::span{batch.targets}.subspan(row, 1));
  }
  return sum / weights;
}

}  // namespace

TEST_CASE("A training with class weights has the serial losses under every strategy", "[train][loss]") {
  for (const ways_test::Way& way : ways()) {
    CAPTURE(way.name, way.ranks);
    const auto report = testing::serial_equivalence<comm::Thread>(
        classifier, [](int step) { return batch_of(step); }, way.strategy, way.ranks,
        testing::EquivalenceOptions{.steps = 12, .global_batch = 13});
    CHECK(static_cast<bool>(report));
    if (!report) WARN(report.text());
  }
}

TEST_CASE("The mean of a weighted loss is divided by the weights of all ranks, whether they know the number of rows or not",
          "[train][loss]") {
  const auto batch = batch_of(0);
  comm::Self self;
  pdp::Trainer single{self, Single{}, classifier, {.global_batch = 13}};
  const double expected = mean_of(single, batch);
  for (const Index given_rows : {Index{0}, Index{13}}) {
    for (const ways_test::Way& way : ways()) {
      CAPTURE(way.name, way.ranks, given_rows);
      const auto found = testing::ranks<comm::Thread>(way.ranks, [&](comm::Thread& world) {
        pdp::Trainer trainer{world, way.strategy, classifier, {.global_batch = 13}};
        const auto share = testing::detail::share_of(batch, trainer.share(), width);
        const auto totals = trainer.step(share.x.values(), share.targets, given_rows);
        return std::array{totals.mean_loss(), totals.weight, totals.rows, totals.ignored};
      });
      for (const auto& [mean, weight, rows, ignores] : found) {
        CHECK(mean == Approx(expected).epsilon(1e-6));
        CHECK(weight == Approx(loss::weight_of_rows(smooth, std::span<const std::int32_t>{batch.targets}, 13)));
        CHECK(rows == 11);
        CHECK(ignores == 2);
      }
    }
  }
}

TEST_CASE("A step in which all rows have the weight 0 changes no parameter without label smoothing", "[train][loss]") {
  constexpr pdp::Task sharp{classifier.model, weighted, pdp::optim::Sgd{.lr = 0.1f}};
  comm::Self self;
  pdp::Trainer trainer{self, Single{}, sharp, {.global_batch = 13}};
  const auto batch = batch_of(3);
  const auto before = trainer.parameters();
  CHECK(trainer.step(batch.x, batch.targets).mean_loss() == 0);
  const auto after = trainer.parameters();
  for (std::size_t at = 0; at < before.size(); ++at) CHECK(before[at].values == after[at].values);
}

TEST_CASE("evaluate and fit give weighted means over a dataset, with any number of ranks", "[train][loss]") {
  constexpr Index samples = 37;
  const auto batch = batch_of(0, samples);
  const pdp::data::InMemory<std::int32_t> data{pdp::Shape{width}, batch.x, batch.targets};
  for (const ways_test::Way& way : ways()) {
    CAPTURE(way.name, way.ranks);
    const auto found = testing::ranks<comm::Thread>(way.ranks, [&](comm::Thread& world) {
      pdp::Trainer trainer{world, way.strategy, classifier, {.global_batch = 13}};
      const auto history = trainer.fit(data, {.epochs = 2, .progress = false, .validation = &data}, [](const auto&) {});
      return std::array{trainer.evaluate(data).mean_loss(), history.back().validation->mean_loss(), history.back().loss};
    });
    comm::Self self;
    pdp::Trainer single{self, Single{}, classifier, {.global_batch = 13}};
    const double of_epoch = single.fit(data, {.epochs = 2, .progress = false}, [](const auto&) {}).back().loss;
    const double expected = mean_of(single, batch);
    for (const auto& [evaluated, validated, trained] : found) {
      CHECK(evaluated == Approx(expected).epsilon(1e-5));
      CHECK(validated == evaluated);
      CHECK(trained == Approx(of_epoch).epsilon(1e-5));
    }
  }
}

TEST_CASE("An epoch that was interrupted keeps the weights of its first steps", "[train][loss]") {
  pdp::checkpoint::Position at;
  pdp::EpochRun before{at, 3, false};
  CHECK_FALSE(before.count({.loss = 6, .rows = 2, .weight = 12}));
  CHECK(at.epoch_weight == 12);
  pdp::checkpoint::Position read = at;
  pdp::EpochRun after{read, 3, false};
  CHECK_FALSE(after.count({.loss = 2, .rows = 5, .weight = 4}));
  CHECK(after.end().loss == 0.5);
  CHECK(read.epoch_weight == 0);
}

TEST_CASE("A trainer refuses weights for another number of classes", "[train][loss][bad input]") {
  comm::Self self;
  constexpr pdp::Task wrong{nn::Sequential{nn::Linear{width, 5}}, weighted, pdp::optim::Sgd{}};
  CHECK_THROWS_WITH((pdp::Trainer{self, Single{}, wrong, {.global_batch = 13}}),
                    Contains("the loss has weights for 4 classes, but the model has 5 outputs"));
}

}  // namespace weighted_rows_test
