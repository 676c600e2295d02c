#include <pdp/train/trainer.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/optimizers.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/testing/equivalence.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace losses_test {

namespace comm = pdp::comm;
namespace loss = pdp::loss;
namespace nn = pdp::nn;
namespace testing = pdp::testing;
using namespace pdp::strategy;
using pdp::Index;

namespace {

constexpr Index width = 5, outputs = 6;
constexpr auto model = nn::Sequential{nn::Linear{width, 8}, nn::Tanh{}, nn::Linear{8, 8}, nn::Tanh{}, nn::Linear{8, outputs}};
constexpr pdp::Task huber{model, loss::HuberLoss{.delta = 0.5f}, pdp::optim::Sgd{.lr = 0.1f}};
constexpr pdp::Task labels{model, loss::BinaryCrossEntropy{.ignore_nan = true}, pdp::optim::Adam{.lr = 1e-2f}};

testing::GlobalBatch<float> values_of(int step, bool probabilities) {
  constexpr Index rows = 13;
  testing::GlobalBatch<float> batch{support::normal(rows * width, 10 + step), support::normal(rows * outputs, 30 + step)};
  if (!probabilities) return batch;
  for (float& each : batch.targets) each = each > 1 ? 1 : each < 0 ? 0 : each;
  for (Index row = step % 3; row < rows; row += 3)
    batch.targets[pdp::as_size(row * outputs + row % outputs)] = std::numeric_limits<float>::quiet_NaN();
  return batch;
}

constexpr pdp::Task smoothed{model, loss::CrossEntropy{.label_smoothing = 0.1}, pdp::optim::Adam{.lr = 1e-2f}};
testing::GlobalBatch<std::int32_t> classes_of(int step) {
  testing::GlobalBatch<std::int32_t> batch{support::normal(13 * width, 10 + step), {}};
  for (int row = 0; row < 13; ++row) batch.targets.push_back((row * 7 + step) % static_cast<int>(outputs));
  return batch;
}

struct Way {
  std::string name;
  AnyStrategy strategy;
  int ranks;
};
const std::vector<Way>& ways() {
  static const std::vector<Way> all{{"DataParallel", DataParallel{.accumulate = 2}, 2},
                                    {"DataParallel", DataParallel{}, 4},
                                    {"TensorParallel", TensorParallel{}, 2},
                                    {"TensorParallel", TensorParallel{}, 4},
                                    {"Pipeline", Pipeline<>{.micro_batches = 3}, 2},
                                    {"Hybrid", Hybrid<>{.mesh = {.data = 2, .tensor = 2}}, 4}};
  return all;
}

template <class TaskType, class BatchOf>
void check_equivalence(const TaskType& of, const BatchOf& batch_of) {
  for (const Way& way : ways()) {
    CAPTURE(way.name, way.ranks);
    const auto result = testing::serial_equivalence<comm::Thread>(of, batch_of, way.strategy, way.ranks, {.steps = 12, .global_batch = 13});
    CHECK(static_cast<bool>(result));
    if (!result) WARN(result.text());
  }
}

}  // namespace

TEST_CASE("HuberLoss and BinaryCrossEntropy have the serial losses under every strategy", "[train][loss]") {
  check_equivalence(huber, [](int step) { return values_of(step, false); });
  check_equivalence(labels, [](int step) { return values_of(step, true); });
}

TEST_CASE("CrossEntropy with label_smoothing has the serial losses under every strategy", "[train][loss]") {
  check_equivalence(smoothed, [](int step) { return classes_of(step); });
}

TEST_CASE("Trainer learns independent labels with BinaryCrossEntropy", "[train][loss]") {
  comm::Self world;
  pdp::Trainer trainer{
      world, Single{}, pdp::Task{nn::Linear{4, 2}, loss::BinaryCrossEntropy{}, pdp::optim::Adam{.lr = 0.05f}}, {.global_batch = 16}};
  constexpr Index samples = 128;
  const auto x = support::normal(samples * 4, 1);
  std::vector<float> labels_of;
  for (Index row = 0; row < samples; ++row)
    for (Index label = 0; label < 2; ++label) labels_of.push_back(x[pdp::as_size(row * 4 + label)] > 0 ? 1.0f : 0.0f);
  const pdp::data::InMemory<float> data{pdp::Shape{4}, x, labels_of, pdp::Shape{2}};
  const double before = trainer.evaluate(data).mean_loss();
  trainer.fit(data, {.epochs = 40, .progress = false}, [](const auto&) {});
  CHECK(trainer.evaluate(data).mean_loss() < before / 4);
}

TEST_CASE("Trainer::fit and step reject targets that BinaryCrossEntropy does not take", "[train][loss][bad input]") {
  comm::Self world;
  pdp::Trainer trainer{world, Single{}, pdp::Task{nn::Linear{1, 1}, loss::BinaryCrossEntropy{}, pdp::optim::Sgd{}}, {.global_batch = 2}};
  const std::vector<float> x{1, 2}, y{1, 3};
  const pdp::data::InMemory<float> data{pdp::Shape{1}, x, y};
  const auto message = [](const auto& call) { return support::message_of<pdp::ConfigError>(call).value_or(""); };
  CHECK_THAT(message([&] { trainer.fit(data, {.epochs = 1, .progress = false}, [](const auto&) {}); }),
             Contains("the target 3 for output 0"));
  CHECK_THAT(message([&] { static_cast<void>(trainer.evaluate(data)); }), Contains("the target 3"));
  CHECK_THAT(message([&] { trainer.step(x, y); }), Contains("row 1 of a batch has the target 3 for output 0"));
}

}  // namespace losses_test
