#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/data/augmented.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/metric/classification.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/callbacks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/print_epoch.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "strategy/tasks.hpp"

namespace training_metrics_test {

namespace comm = pdp::comm;
namespace data = pdp::data;
namespace metric = pdp::metric;
using pdp::Epoch;

namespace {

const std::vector<metric::Any>& metrics() {
  static const std::vector<metric::Any> all{metric::TopK{2}, metric::ConfusionMatrix{}};
  return all;
}

struct Run {
  std::vector<Epoch> history{};
  pdp::Evaluation after{};  // of the training set, when fit() has ended
};

/// Trains on this rank's `data`, with metrics of the training set.
template <class Data>
Run train(comm::Thread& world, const Data& set, const pdp::FitOptions& options) {
  pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, tasks::classifier, {.global_batch = 20, .seed = 1}};
  Run run;
  run.history = trainer.fit(set, options, [](const Epoch&) {});
  run.after = trainer.evaluate(set, options.training_metrics);
  return run;
}

data::PerRank<data::InMemory<std::int32_t>> part_of(const data::InMemory<std::int32_t>& set, int rank, int size) {
  const data::Rows rows = data::shard_rows(set.size(), {rank, size});
  std::vector<pdp::Index> which(static_cast<std::size_t>(rows.size()));
  std::iota(which.begin(), which.end(), rows.first);
  std::vector<float> x(which.size() * 8);
  std::vector<std::int32_t> y(which.size());
  set.gather(which, x, y);
  return data::PerRank{data::InMemory<std::int32_t>{pdp::Shape{8}, x, y}};
}

void check_last(const Run& run) {
  REQUIRE(run.history.size() == 2);
  const Epoch& last = run.history.back();
  REQUIRE(last.training);
  CHECK((last.training->rows == 83 && last.training->loss == run.after.loss && last.training->correct == run.after.correct));
  REQUIRE(last.training->metrics.size() == 2);
  for (std::size_t at = 0; at < 2; ++at) CHECK(last.training->metrics[at].values == run.after.metrics[at].values);
  CHECK(run.history.front().training->loss != last.training->loss);
}

}  // namespace

TEST_CASE("Trainer::fit evaluates metrics of the training set after each epoch when they are given", "[train][metrics]") {
  const auto set = tasks::samples(83), held_out = tasks::samples(40);
  const int size = GENERATE(1, 3);
  const auto runs = pdp::testing::ranks<comm::Thread>(size, [&](comm::Thread& world) {
    return train(world, set, {.epochs = 2, .progress = false, .validation = &held_out, .training_metrics = metrics()});
  });
  for (const Run& run : runs) {
    check_last(run);
    const Epoch& last = run.history.back();
    CHECK((last.validation->rows == 40 && last.validation->metrics.empty()));
    CHECK(last.value("training loss") == last.training->mean_loss());
    CHECK(last.value("training accuracy") == last.training->accuracy());
    const std::string name = last.training->metrics[0].name;
    CHECK(last.value("training " + name) == last.training->metrics[0].value());
    CHECK((last.higher_is_better("training " + name) && last.higher_is_better("training accuracy")));
    CHECK_FALSE(last.higher_is_better("training loss"));
    CHECK_THAT(files::message_of<pdp::ConfigError>([&] { static_cast<void>(last.value(name)); }).value(),
               Contains("validation accuracy, training loss, training accuracy, training " + name));
    CHECK_THAT(pdp::detail::epoch_line(last), Contains(" || training " + name + " ") && Contains(" || validation loss "));
  }
}

TEST_CASE("Trainer::fit evaluates metrics of a training set that is divided over the ranks", "[train][metrics]") {
  const auto set = tasks::samples(83);
  for (const Run& run : pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
         return train(world, part_of(set, world.rank(), 2), {.epochs = 2, .progress = false, .training_metrics = metrics()});
       }))
    check_last(run);
}

TEST_CASE("Trainer::fit evaluates the training set without random changes", "[train][metrics]") {
  const auto change = [](pdp::random::Key key, std::span<float> sample) { sample[0] += pdp::random::normal(key, 0); };
  const data::Augmented set{tasks::samples(83), change};
  for (const Run& run : pdp::testing::ranks<comm::Thread>(
           1, [&](comm::Thread& world) { return train(world, set, {.epochs = 2, .progress = false, .training_metrics = metrics()}); }))
    check_last(run);
}

TEST_CASE("Trainer::fit changes no bit of a training when it evaluates the training set, and does so only if asked", "[train][metrics]") {
  const auto set = tasks::samples(83);
  const auto runs = pdp::testing::ranks<comm::Thread>(1, [&](comm::Thread& world) {
    return std::vector{train(world, set, {.epochs = 2, .progress = false}),
                       train(world, set, {.epochs = 2, .progress = false, .training_metrics = metrics()})};
  });
  CHECK_FALSE(runs[0][0].history.back().training);
  CHECK(runs[0][0].after.loss == runs[0][1].after.loss);
}

TEST_CASE("Trainer::fit throws on every rank if ranks give different metrics of the training set", "[train][metrics]") {
  const auto set = tasks::samples(40);
  const auto errors = pdp::testing::errors<comm::Thread>(2, [&](comm::Thread& world) {
    pdp::FitOptions options{.progress = false, .training_metrics = metrics()};
    if (world.rank() == 1) options.training_metrics.pop_back();
    static_cast<void>(train(world, set, options));
  });
  for (const auto& error : errors) CHECK_THAT(error.what(), Contains("training_metrics"));
}

}  // namespace training_metrics_test
