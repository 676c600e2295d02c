#include <pdp/train/trainer.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/metric/metrics.hpp>
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
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace ignored_rows_test {

namespace comm = pdp::comm;
namespace loss = pdp::loss;
namespace nn = pdp::nn;
namespace testing = pdp::testing;
using namespace pdp::strategy;
using pdp::Index;

namespace {

constexpr Index width = 5, classes = 4;
constexpr std::int32_t ignored = -100;
constexpr auto model = nn::Sequential{nn::Linear{width, 8}, nn::Tanh{}, nn::Linear{8, 8}, nn::Tanh{}, nn::Linear{8, classes}};
constexpr pdp::Task classifier{model, loss::CrossEntropy{.ignore_index = ignored}, pdp::optim::Adam{.lr = 1e-2f}};
constexpr pdp::Task all_count{model, loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-2f}};
constexpr pdp::Task regression{model, loss::MeanSquaredError{.ignore_nan = true}, pdp::optim::Sgd{.lr = 0.1f}};

/// Whether a row counts. The first rows of a step, which are those of the first ranks, count less often.
bool counts(int step, Index row) { return row % 3 != step % 3 && (step % 4 != 1 || row > 8); }

testing::GlobalBatch<std::int32_t> batch_of(int step, Index rows = 13) {
  testing::GlobalBatch<std::int32_t> batch{support::normal(rows * width, 10 + step), {}};
  for (Index row = 0; row < rows; ++row)
    batch.targets.push_back(counts(step, row) ? static_cast<std::int32_t>((row * 7 + step) % classes) : ignored);
  return batch;
}
testing::GlobalBatch<float> values_of(int step, Index rows = 13) {
  testing::GlobalBatch<float> batch{support::normal(rows * width, 10 + step), support::normal(rows * classes, 30 + step)};
  for (Index row = 0; row < rows; ++row)
    if (!counts(step, row)) batch.targets[pdp::as_size(row * classes + row % classes)] = std::numeric_limits<float>::quiet_NaN();
  return batch;
}

struct Way {
  std::string name;
  AnyStrategy strategy;
  int ranks;
};
std::vector<Way> ways() {
  std::vector<Way> all{{"Single", Single{.accumulate = 3}, 1}};
  for (const int ranks : {2, 4}) {
    all.push_back({"DataParallel", DataParallel{.accumulate = 2}, ranks});
    for (const int stage : {1, 2, 3}) all.push_back({"Zero " + std::to_string(stage), Zero{.stage = stage}, ranks});
    all.push_back({"Pipeline", Pipeline<>{.micro_batches = 3}, ranks});
    all.push_back({"TensorParallel", TensorParallel{}, ranks});
  }
  all.push_back({"ZeroBubble", Pipeline<ZeroBubble>{.micro_batches = 4}, 2});
  all.push_back({"Hybrid", Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}, 4});
  all.push_back({"Hybrid", Hybrid<>{.mesh = {.data = 2, .tensor = 2}}, 4});
  return all;
}

constexpr testing::EquivalenceOptions options{.steps = 12, .global_batch = 13};

}  // namespace

TEST_CASE("A training that ignores rows has the serial losses under every strategy", "[train][loss]") {
  for (const Way& way : ways()) {
    CAPTURE(way.name, way.ranks);
    const auto of_classes = testing::serial_equivalence<comm::Thread>(
        classifier, [](int step) { return batch_of(step); }, way.strategy, way.ranks, options);
    CHECK(static_cast<bool>(of_classes));
    if (!of_classes) WARN(of_classes.text());
    const auto of_values = testing::serial_equivalence<comm::Thread>(
        regression, [](int step) { return values_of(step); }, way.strategy, way.ranks, options);
    CHECK(static_cast<bool>(of_values));
    if (!of_values) WARN(of_values.text());
  }
}

TEST_CASE("A training that ignores rows equals one without these rows", "[train][loss]") {
  comm::Self world;
  pdp::Trainer with{world, Single{}, classifier, {.global_batch = 13}};
  pdp::Trainer without{world, Single{}, all_count, {.global_batch = 13}};
  for (int step = 0; step < 6; ++step) {
    const auto batch = batch_of(step);
    testing::GlobalBatch<std::int32_t> kept;
    for (std::size_t row = 0; row < batch.targets.size(); ++row) {
      if (batch.targets[row] == ignored) continue;
      kept.targets.push_back(batch.targets[row]);
      kept.x.insert(kept.x.end(), batch.x.begin() + static_cast<std::ptrdiff_t>(row) * width,
                    batch.x.begin() + static_cast<std::ptrdiff_t>(row + 1) * width);
    }
    const auto one = with.step(batch.x, batch.targets), other = without.step(kept.x, kept.targets);
    CHECK_THAT(one.mean_loss(), WithinRel(other.mean_loss(), 1e-5));
    CHECK(one.rows == static_cast<double>(kept.targets.size()));
    CHECK(one.ignored == 13 - one.rows);
    CHECK(one.correct == other.correct);
  }
}

TEST_CASE("A step in which no row counts has a loss of zero and changes no parameter", "[train][loss]") {
  constexpr pdp::Task plain{model, loss::CrossEntropy{.ignore_index = ignored}, pdp::optim::Sgd{.lr = 0.5f}};
  for (const Index given_rows : {Index{0}, Index{13}}) {
    for (const bool pipeline : {false, true}) {
      testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
        const AnyStrategy strategy = pipeline ? AnyStrategy{Pipeline<>{.micro_batches = 2}} : AnyStrategy{DataParallel{}};
        pdp::Trainer trainer{world, strategy, plain, {.global_batch = 13, .non_finite = pdp::plan::NonFinite::stop}};
        auto batch = batch_of(0);
        batch.targets.assign(batch.targets.size(), ignored);
        const auto before = trainer.parameters();
        const auto share = testing::detail::share_of(batch, trainer.share(), width);
        const auto totals = trainer.step(share.x.values(), share.targets, given_rows);
        const auto after = trainer.parameters();
        bool is_same = true;
        for (std::size_t at = 0; at < before.size(); ++at) is_same = is_same && before[at].values == after[at].values;
        if (!(totals.mean_loss() == 0 && totals.rows == 0 && totals.ignored == 13 && totals.gradient_norm == 0 && is_same))
          throw std::logic_error{"a step without rows that count changed something"};
        if (!std::isnan(totals.accuracy())) throw std::logic_error{"an accuracy of no rows"};
      });
    }
  }
}

TEST_CASE("evaluate, metrics and fit leave out ignored rows", "[train][loss]") {
  constexpr Index samples = 37;
  const auto batch = batch_of(0, samples);
  std::vector<std::int32_t> kept_targets;
  std::vector<float> kept;
  for (std::size_t row = 0; row < batch.targets.size(); ++row) {
    if (batch.targets[row] == ignored) continue;
    kept_targets.push_back(batch.targets[row]);
    kept.insert(kept.end(), batch.x.begin() + static_cast<std::ptrdiff_t>(row) * width,
                batch.x.begin() + static_cast<std::ptrdiff_t>(row + 1) * width);
  }
  const pdp::data::InMemory<std::int32_t> all{pdp::Shape{width}, batch.x, batch.targets}, counted{pdp::Shape{width}, kept, kept_targets};
  const std::vector<pdp::metric::Any> metrics{pdp::metric::Accuracy{}, pdp::metric::TopK{.k = 2}, pdp::metric::ConfusionMatrix{}};
  for (const Way& way : ways()) {
    if (way.ranks == 4 && way.name != "Hybrid") continue;
    CAPTURE(way.name, way.ranks);
    const auto found = testing::ranks<comm::Thread>(way.ranks, [&](comm::Thread& world) {
      pdp::Trainer trainer{world, way.strategy, classifier, {.global_batch = 13}};
      const auto history = trainer.fit(all, {.epochs = 2, .progress = false, .validation = &all, .metrics = metrics}, [](const auto&) {});
      const auto of_all = trainer.evaluate(all, metrics), of_counted = trainer.evaluate(counted, metrics);
      std::vector<double> numbers{history.back().loss, history.back().validation->mean_loss(), of_all.rows, of_all.ignored,
                                  of_counted.ignored};
      const auto differ = [&](double a, double b) { numbers.push_back(std::abs(a - b)); };
      differ(of_all.mean_loss(), of_counted.mean_loss());
      differ(of_all.mean_loss(), history.back().validation->mean_loss());
      differ(of_all.accuracy(), of_counted.accuracy());
      for (std::size_t m = 0; m < metrics.size(); ++m)
        for (std::size_t i = 0; i < of_all.metrics[m].values.size(); ++i)
          differ(of_all.metrics[m].values[i], of_counted.metrics[m].values[i]);
      differ(of_all.metrics[0].value(), of_all.accuracy());
      return numbers;
    });
    for (const auto& numbers : found) {
      CHECK(numbers[0] > 0);
      CHECK(numbers[2] == static_cast<double>(kept_targets.size()));
      CHECK(numbers[3] == static_cast<double>(samples) - numbers[2]);
      CHECK(numbers[4] == 0);
      for (std::size_t at = 5; at < numbers.size(); ++at) CHECK(numbers[at] < 1e-6);
      CHECK_THAT(numbers[0], WithinRel(found.front()[0], 1e-6));
    }
  }
}

}  // namespace ignored_rows_test
