#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/optim/reduce_on_plateau.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/callbacks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "strategy/tasks.hpp"

namespace reduce_on_plateau_test {

namespace comm = pdp::comm;
using pdp::Epoch, pdp::ReduceLearningRateOnPlateau;
using pdp::optim::ReduceOnPlateauOptions;

namespace {

/// A metric with one value for each epoch, the same on every rank. Merging keeps it.
template <bool higher>
struct Scripted {
  static constexpr bool higher_is_better = higher;
  const std::vector<double>* values;
  std::size_t* evaluations;
  [[nodiscard]] std::string name() const { return "scripted"; }
  [[nodiscard]] pdp::Index state_size(pdp::Index) const { return 1; }
  void add(pdp::Matrix<const float>, std::span<const std::int32_t>, std::span<double>) const {}
  [[nodiscard]] double result(std::span<const double>) const { return (*values)[(*evaluations)++]; }
};

struct Run {
  std::vector<double> rates{};    // of the epochs
  std::vector<double> factors{};  // after the epochs
  friend bool operator==(const Run&, const Run&) = default;
};

struct Options {
  int ranks = 1, epochs = 0;
  double first_factor = 1;
  std::filesystem::path folder{};
};

/// Trains with a metric that has the given values. Returns what rank 0 sees, and checks that all ranks see the same.
template <bool higher>
Run train(const std::vector<double>& values, const ReduceLearningRateOnPlateau& callback, const Options& options) {
  const auto samples = tasks::samples(40);
  const auto runs = pdp::testing::ranks<comm::Thread>(options.ranks, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, tasks::classifier, {.global_batch = 20, .seed = 1}};
    trainer.set_learning_rate_factor(options.first_factor);
    std::size_t evaluations = 0;
    Run run;
    const auto watch = [&](const Epoch& epoch) {
      run.rates.push_back(epoch.learning_rate);
      run.factors.push_back(trainer.learning_rate_factor());
    };
    trainer.fit(samples,
                {.epochs = options.epochs == 0 ? static_cast<int>(values.size()) : options.epochs,
                 .progress = false,
                 .checkpoint = {.directory = options.folder},
                 .validation = &samples,
                 .metrics = {Scripted<higher>{&values, &evaluations}},
                 .callbacks = {callback, watch}},
                [](const Epoch&) {});
    return run;
  });
  for (const Run& run : runs) CHECK(run == runs.front());
  return runs.front();
}

const std::vector<double> stagnating{5, 4, 4, 4, 4, 3.9, 4, 4, 4, 4, 4};

}  // namespace

TEST_CASE("ReduceLearningRateOnPlateau has the defaults of optim::ReduceOnPlateau", "[train][plateau]") {
  const ReduceLearningRateOnPlateau callback;
  const ReduceOnPlateauOptions value;
  CHECK((callback.by == value.by && callback.patience == value.patience && callback.threshold == value.threshold));
  CHECK((callback.is_relative == value.is_relative && callback.cooldown == value.cooldown && callback.least == value.least));
}

TEST_CASE("ReduceLearningRateOnPlateau sets the factors of optim::ReduceOnPlateau on all ranks", "[train][plateau]") {
  const int ranks = GENERATE(1, 2);
  const double first = GENERATE(1.0, 0.5);
  const bool higher = GENERATE(false, true);
  auto values = stagnating;
  if (higher)
    for (double& each : values) each = 10 - each;
  const ReduceLearningRateOnPlateau callback{
      .by = 0.5f, .patience = 1, .threshold = 1e-2, .cooldown = 1, .least = 0.2f, .watches = "scripted"};
  pdp::optim::ReduceOnPlateau plateau{
      {.by = 0.5f, .patience = 1, .threshold = 1e-2, .cooldown = 1, .least = 0.2f, .prefers_larger = higher}};
  Run expected;
  const double rate = static_cast<double>(tasks::classifier.optimizer.lr);
  for (const double value : values) {
    expected.rates.push_back(expected.factors.empty() ? rate * first : rate * expected.factors.back());
    expected.factors.push_back(first * plateau.factor_after(value));
  }
  REQUIRE(plateau.factor() < 0.3);
  const Run found = higher ? train<true>(values, callback, {.ranks = ranks, .first_factor = first})
                           : train<false>(values, callback, {.ranks = ranks, .first_factor = first});
  for (std::size_t at = 0; at < values.size(); ++at) {
    CHECK(found.factors[at] == Approx(expected.factors[at]).epsilon(1e-12));
    CHECK(found.rates[at] == Approx(expected.rates[at]).epsilon(1e-6));
  }
}

TEST_CASE("ReduceLearningRateOnPlateau reduces at the same epochs when a training continues", "[train][plateau]") {
  const ReduceLearningRateOnPlateau callback{.by = 0.5f, .patience = 1, .watches = "scripted"};
  const Run whole = train<false>(stagnating, callback, {});
  for (const int first : {1, 3, 4, 7}) {
    const files::TemporaryFolder folder;
    Run found = train<false>(stagnating, callback, {.epochs = first, .folder = folder / "run"});
    const std::vector<double> rest(stagnating.begin() + first, stagnating.end());
    const Run behind = train<false>(rest, callback, {.ranks = 2, .epochs = static_cast<int>(stagnating.size()), .folder = folder / "run"});
    found.rates.insert(found.rates.end(), behind.rates.begin(), behind.rates.end());
    found.factors.insert(found.factors.end(), behind.factors.begin(), behind.factors.end());
    CHECK(found == whole);
  }
}

TEST_CASE("ReduceLearningRateOnPlateau begins anew in a fit that does not continue", "[train][plateau]") {
  const auto samples = tasks::samples(40);
  pdp::testing::ranks<comm::Thread>(1, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, tasks::classifier, {.global_batch = 20, .seed = 1}};
    ReduceLearningRateOnPlateau callback{.by = 0.5f, .patience = 0, .threshold = 0.9, .watches = "loss"};
    std::vector<double> factors;
    const auto watch = [&](const Epoch&) { factors.push_back(trainer.learning_rate_factor()); };
    for (int fit = 0; fit < 2; ++fit)
      trainer.fit(samples, {.epochs = 2, .progress = false, .callbacks = {std::ref(callback), watch}}, [](const Epoch&) {});
    CHECK(factors == std::vector<double>{1, 0.5, 0.5, 0.25});  // the first loss of each fit is an improvement
  });
}

TEST_CASE("ReduceLearningRateOnPlateau rejects wrong options before the first step, and unknown results", "[train][plateau]") {
  const auto message = [](const ReduceLearningRateOnPlateau& callback) {
    return files::message_of<pdp::ConfigError>([&] { train<false>({1}, callback, {}); }).value();
  };
  CHECK_THAT(message({.by = 2}), Contains("ReduceOnPlateau was given by = 2"));
  CHECK_THAT(message({.watches = "luck"}), Contains("there is no result 'luck'; there are: loss, accuracy"));
}

}  // namespace reduce_on_plateau_test
