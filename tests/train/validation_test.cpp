#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/metric/classification.hpp>
#include <pdp/metric/regression.hpp>
#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/callback.hpp>
#include <pdp/train/callbacks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/print_epoch.hpp>
#include <pdp/train/trainer.hpp>

#include <array>
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

namespace validation_test {

namespace comm = pdp::comm;
namespace metric = pdp::metric;
namespace nn = pdp::nn;
namespace strategy = pdp::strategy;
using pdp::Epoch, pdp::Next;
using pdp::testing::ranks;

namespace {

constexpr pdp::Task divided_classifier{nn::Sequential{nn::Replicate{}, nn::ColumnParallel{8, 24}, nn::Tanh{}, nn::RowParallel{24, 16},
                                                      nn::AllReduce{}, nn::Tanh{}, nn::Replicate{}, nn::ColumnParallel{16, 4}},
                                       pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};
constexpr pdp::Task regression{nn::Sequential{nn::Linear{8, 24}, nn::Tanh{}, nn::Linear{24, 3}}, pdp::loss::MeanSquaredError{},
                               pdp::optim::Adam{.lr = 1e-2f}};

pdp::data::InMemory<float> curve(std::size_t count, std::uint64_t seed) {
  const std::vector<float> x = pdp::testing::normal(count * 8, seed);
  std::vector<float> y;
  for (std::size_t at = 0; at < x.size(); at += 8) y.insert(y.end(), {x[at] * x[at + 1], x[at + 2] - x[at + 3], 5 + x[at + 4]});
  return {pdp::Shape{8}, x, y, pdp::Shape{3}};
}
const std::vector<metric::Any>& of_classes() {
  static const std::vector<metric::Any> metrics{metric::Accuracy{}, metric::TopK{2}, metric::ConfusionMatrix{}};
  return metrics;
}

/// Trains with a validation set of 83 samples. Returns the history of rank 0, and checks that all ranks have the same.
template <class Task, class Data, class Strategy>
std::vector<Epoch> history(const Task& task, const Data& train, const Data& held_out, const std::vector<metric::Any>& metrics,
                           const Strategy& strategy, int count) {
  const auto all = ranks<comm::Thread>(count, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy, task, {.global_batch = 32, .seed = 3}};
    return trainer.fit(train, {.epochs = 3, .progress = false, .validation = &held_out, .metrics = metrics}, [](const Epoch&) {});
  });
  for (const auto& each : all)
    for (std::size_t e = 0; e < 3; ++e) {
      CHECK(each[e].validation->loss == all[0][e].validation->loss);
      for (std::size_t m = 0; m < metrics.size(); ++m)
        CHECK(each[e].validation->metrics[m].values == all[0][e].validation->metrics[m].values);
    }
  return all.front();
}

void check_equal(const std::vector<Epoch>& found, const std::vector<Epoch>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t e = 0; e < found.size(); ++e) {
    const pdp::Evaluation &one = *found[e].validation, &other = *expected[e].validation;
    CHECK(one.rows == 83);
    CHECK_THAT(one.mean_loss(), WithinRel(other.mean_loss(), 1e-4));
    REQUIRE(one.metrics.size() == other.metrics.size());
    for (std::size_t m = 0; m < one.metrics.size(); ++m) {
      REQUIRE(one.metrics[m].values.size() == other.metrics[m].values.size());
      for (std::size_t i = 0; i < one.metrics[m].values.size(); ++i)
        CHECK_THAT(one.metrics[m].values[i], WithinRel(other.metrics[m].values[i], 1e-4) || WithinAbs(other.metrics[m].values[i], 1e-6));
    }
  }
}

/// Trains on one rank. `watch` is called after each epoch, as a callback.
template <class... Callbacks>
std::vector<Epoch> fit_one(const pdp::CheckpointOptions& checkpoint, int epochs, Callbacks... callbacks) {
  const auto train = tasks::samples(100), held_out = tasks::samples(40);
  std::vector<Epoch> found;
  ranks<comm::Thread>(1, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy::Single{}, tasks::classifier, {.global_batch = 20, .seed = 1}};
    found = trainer.fit(train,
                        {.epochs = epochs,
                         .progress = false,
                         .checkpoint = checkpoint,
                         .validation = &held_out,
                         .metrics = {metric::Accuracy{}},
                         .callbacks = {callbacks...}},
                        [](const Epoch&) {});
  });
  return found;
}

/// A metric whose value a test decides.
struct Scripted {
  const std::vector<double>* values;
  int* calls;
  [[nodiscard]] std::string name() const { return "scripted"; }
  [[nodiscard]] pdp::Index state_size(pdp::Index) const { return 1; }
  void add(pdp::Matrix<const float>, std::span<const std::int32_t>, std::span<double>) const {}
  [[nodiscard]] double result(std::span<const double>) const { return (*values)[static_cast<std::size_t>((*calls)++)]; }
};

}  // namespace

TEST_CASE("Validation with metrics of classes gives those of Single under every strategy", "[train][validation]") {
  const auto train = tasks::samples(150), held_out = tasks::samples(83);
  const auto expected = history(tasks::classifier, train, held_out, of_classes(), strategy::Single{}, 1);
  CHECK(expected.back().validation->metric("accuracy").value() > 0.4);
  CHECK(expected.back().validation->metric("accuracy").value() == expected.back().validation->accuracy());
  const auto check = [&](const auto& strategy, int count) {
    check_equal(history(tasks::classifier, train, held_out, of_classes(), strategy, count), expected);
  };
  check(strategy::DataParallel{}, 2);
  check(strategy::DataParallel{}, 3);
  check(strategy::Zero{.stage = 3}, 4);
  check(strategy::Pipeline<>{.micro_batches = 3}, 3);
  const auto divided = history(divided_classifier, train, held_out, of_classes(), strategy::Single{}, 1);
  check_equal(history(divided_classifier, train, held_out, of_classes(), strategy::TensorParallel{}, 2), divided);
}

TEST_CASE("Validation with metrics of numbers gives those of Single under every strategy", "[train][validation]") {
  const std::vector<metric::Any> metrics{metric::MeanAbsoluteError{}, metric::RootMeanSquaredError{}, metric::RSquared{}};
  const auto train = curve(150, 1), held_out = curve(83, 2);
  const auto expected = history(regression, train, held_out, metrics, strategy::Single{}, 1);
  const auto check = [&](const auto& strategy, int count) {
    check_equal(history(regression, train, held_out, metrics, strategy, count), expected);
  };
  check(strategy::DataParallel{}, 3);
  check(strategy::Zero{.stage = 1}, 2);
  check(strategy::Pipeline<>{.micro_batches = 2}, 2);
}

TEST_CASE("Validation changes no bit of a training", "[train][validation]") {
  const auto train = tasks::samples(100), held_out = tasks::samples(40);
  const auto last = [&](bool validates) {
    return ranks<comm::Thread>(2,
                               [&](comm::Thread& world) {
                                 pdp::Trainer trainer{world, strategy::DataParallel{}, tasks::classifier, {.global_batch = 20, .seed = 1}};
                                 pdp::FitOptions options{.epochs = 3, .progress = false};
                                 if (validates) options.validation = &held_out;
                                 return trainer.fit(train, options, [](const Epoch&) {}).back().loss;
                               })
        .front();
  };
  CHECK(last(true) == last(false));
}

TEST_CASE("The line of an epoch names the results of its validation", "[train][validation]") {
  Epoch epoch{2, 0.5, 0.75, 1};
  CHECK(pdp::detail::epoch_line(epoch) == "### Epoch 2 || loss 0.5000 || performance 0.7500");
  epoch.validation = pdp::Evaluation{{6, 2, 4}, {{"accuracy", {0.5}, true}, {"confusion matrix", {1, 2, 3, 4}}, {"R2", {0.25}, true}}};
  CHECK(pdp::detail::epoch_line(epoch) ==
        "### Epoch 2 || loss 0.5000 || performance 0.7500 || validation loss 1.5000 || accuracy 0.5000 || R2 0.2500");
  CHECK(epoch.value("validation loss") == 1.5);
  CHECK(epoch.value("validation accuracy") == 0.5);
  CHECK(epoch.value("R2") == 0.25);
  CHECK(epoch.higher_is_better("R2"));
  CHECK_FALSE(epoch.higher_is_better("loss"));
  CHECK_THROWS_WITH(epoch.value("r2"),
                    Contains("there is no result 'r2'; there are: loss, accuracy, validation loss, validation accuracy"));
  CHECK_THROWS_WITH(epoch.value("confusion matrix"), Contains("has 4 numbers"));
}

TEST_CASE("A validation set with other targets than the loss takes is refused before the first step", "[train][validation]") {
  const auto train = tasks::samples(40);
  const auto held_out = curve(40, 1);
  const auto thrown = pdp::testing::errors<comm::Thread>(2, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy::DataParallel{}, tasks::classifier, {.global_batch = 20}};
    trainer.fit(train, {.validation = &held_out});
  });
  for (const auto& each : thrown)
    CHECK_THAT(each.what(), Contains("the targets of the dataset are numbers (float), but the loss takes classes (std::int32_t)"));
}

TEST_CASE("Trainer::fit throws on every rank if ranks give different validation sets, metrics or numbers of callbacks",
          "[train][validation]") {
  const auto train = tasks::samples(40);
  const int what = GENERATE(0, 1, 2);
  const auto thrown = pdp::testing::errors<comm::Thread>(3, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy::DataParallel{}, tasks::classifier, {.global_batch = 20}};
    pdp::FitOptions options{.validation = &train, .metrics = {metric::Accuracy{}}, .callbacks = {[](const Epoch&) {}}};
    if (world.rank() == 1 && what == 0) options.validation = {};
    if (world.rank() == 1 && what == 1) options.metrics = {metric::TopK{2}};
    if (world.rank() == 1 && what == 2) options.callbacks.clear();
    trainer.fit(train, options);
  });
  for (const auto& each : thrown)
    CHECK_THAT(each.what(), Contains(std::array{"validation set", "metrics", "callbacks"}[static_cast<std::size_t>(what)]));
}

TEST_CASE("Validation takes a set that is divided over the ranks", "[train][validation]") {
  const auto train = tasks::samples(100), held_out = tasks::samples(83);
  const auto expected = history(tasks::classifier, train, held_out, of_classes(), strategy::DataParallel{}, 3);
  const auto found = ranks<comm::Thread>(3, [&](comm::Thread& world) {
    const pdp::Index begin = std::array{0, 50, 50, 83}[static_cast<std::size_t>(world.rank())];
    const pdp::Index end = std::array{0, 50, 50, 83}[static_cast<std::size_t>(world.rank()) + 1];
    std::vector<pdp::Index> which(static_cast<std::size_t>(end - begin));
    std::iota(which.begin(), which.end(), begin);
    std::vector<float> x(which.size() * 8);
    std::vector<std::int32_t> y(which.size());
    held_out.gather(which, x, y);
    const pdp::data::PerRank part{pdp::data::InMemory<std::int32_t>{pdp::Shape{8}, x, y}};
    pdp::Trainer trainer{world, strategy::DataParallel{}, tasks::classifier, {.global_batch = 32, .seed = 3}};
    return trainer.fit(train, {.epochs = 3, .progress = false, .validation = &part, .metrics = of_classes()}, [](const Epoch&) {});
  });
  for (const auto& each : found) check_equal(each, expected);
}

TEST_CASE("A callback that asks to stop on one rank ends fit on all ranks after the epoch", "[train][callback]") {
  const auto train = tasks::samples(100);
  const auto epochs = ranks<comm::Thread>(3, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy::DataParallel{}, tasks::classifier, {.global_batch = 20}};
    const auto third = [&](const Epoch& epoch) { return world.rank() == 1 && epoch.number == 2 ? Next::stop : Next::proceed; };
    const auto found = trainer.fit(train, {.epochs = 9, .progress = false, .callbacks = {third}}, [](const Epoch&) {});
    CHECK(trainer.fit(train, {.epochs = 2, .progress = false}, third).back().number == 4);  // continues with the next epoch
    return found.size();
  });
  CHECK(epochs == std::vector<std::size_t>{3, 3, 3});
}

TEST_CASE("An on_step that asks to stop on one rank ends fit on all ranks after the next step", "[train][callback]") {
  const auto train = tasks::samples(100);  // 5 steps an epoch
  const std::int64_t last = GENERATE(as<std::int64_t>{}, 6, 8, 9);
  const auto steps = ranks<comm::Thread>(3, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy::DataParallel{}, tasks::classifier, {.global_batch = 20}};
    int epochs = 0;
    trainer.fit(
        train, {.epochs = 9, .progress = false}, [&](const Epoch&) { ++epochs; },
        [&](std::int64_t step, const auto&) { return world.rank() == 2 && step == last ? Next::stop : Next::proceed; });
    CHECK(epochs == (last == 8 ? 2 : last == 9 ? 2 : 1));
    return trainer.steps();
  });
  CHECK(steps == std::vector<std::int64_t>(3, last + 2));
}

TEST_CASE("fit() ends with the step that it was given, also within an epoch, and continues there", "[train][callback]") {
  const auto train = tasks::samples(100);  // 5 steps an epoch
  const auto losses = [&](const std::vector<std::int64_t>& limits) {
    return ranks<comm::Thread>(2, [&](comm::Thread& world) {
      pdp::Trainer trainer{world, strategy::DataParallel{}, tasks::classifier, {.global_batch = 20}};
      std::vector<double> found;
      for (const std::int64_t limit : limits) {
        std::size_t epochs = 0;
        trainer.fit(
            train, {.epochs = 3, .progress = false, .steps = limit}, [&](const Epoch&) { ++epochs; },
            [&](std::int64_t, const auto& totals) { found.push_back(totals.loss); });
        CHECK(trainer.steps() == limit);
        CHECK(epochs <= 3);
      }
      return found;
    });
  };
  const auto whole = losses({15}).front();
  REQUIRE(whole.size() == 15);
  CHECK(losses({1, 7, 10, 10, 15}).front() == whole);
  CHECK(losses({1, 7, 10, 10, 15}).back() == whole);
  // A program that is started again continues, and makes no step if all are made.
  const files::TemporaryFolder folder;
  std::vector<double> found;
  for (const std::int64_t limit : {7, 7, 15})
    ranks<comm::Thread>(1, [&](comm::Thread& world) {
      pdp::Trainer trainer{world, strategy::Single{}, tasks::classifier, {.global_batch = 20}};
      trainer.fit(
          train, {.progress = false, .checkpoint = {.directory = folder / "run"}, .steps = limit}, [](const Epoch&) {},
          [&](std::int64_t, const auto& totals) { found.push_back(totals.loss); });
      CHECK(trainer.steps() == limit);
    });
  REQUIRE(found.size() == whole.size());
  for (std::size_t step = 0; step < whole.size(); ++step) CHECK(found[step] == Approx(whole[step]).epsilon(1e-5));
  // After an epoch that was cut short, other data begins an epoch of its own.
  ranks<comm::Thread>(1, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy::Single{}, tasks::classifier, {.global_batch = 20}};
    trainer.fit(train, {.progress = false, .steps = 3}, [](const Epoch&) {});
    const auto epochs = trainer.fit(tasks::samples(60), {.epochs = 2, .progress = false}, [](const Epoch&) {});
    CHECK(epochs.size() == 2);
    CHECK(trainer.steps() == 3 + 2 * 3);
  });
  ranks<comm::Thread>(1, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy::Single{}, tasks::classifier, {.global_batch = 20}};
    CHECK_THROWS_WITH(trainer.fit(train, {.progress = false, .steps = -1}), Contains("steps = -1 was given"));
  });
}

TEST_CASE("EarlyStopping ends fit after `patience` epochs without progress", "[train][callback]") {
  const std::vector<double> values{5, 4, 4.5, pdp::not_a_number<double>(), 3.95, 3.99, 4, 4, 4};
  const double least_change = GENERATE(0.0, 0.1);
  int calls = 0;
  const auto train = tasks::samples(40);
  ranks<comm::Thread>(1, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, strategy::Single{}, tasks::classifier, {.global_batch = 20}};
    pdp::EarlyStopping stopping{.patience = 3, .least_change = least_change, .watches = "scripted"};
    const auto found = trainer.fit(
        train,
        {.epochs = 9, .progress = false, .validation = &train, .metrics = {Scripted{&values, &calls}}, .callbacks = {std::ref(stopping)}},
        [](const Epoch&) {});
    CHECK(found.size() == (least_change == 0 ? 8U : 5U));
    CHECK(*stopping.best == (least_change == 0 ? 3.95 : 4));
  });
}

TEST_CASE("EarlyStopping continues from a checkpoint, and stops at the same epoch", "[train][callback]") {
  const std::vector<double> values{5, 4, 4.5, 4.5, 4.5, 4.5, 4.5};
  const auto train = tasks::samples(40);
  const files::TemporaryFolder folder;
  int calls = 0;
  const auto fit = [&](int epochs) {
    std::size_t made = 0;
    ranks<comm::Thread>(1, [&](comm::Thread& world) {
      pdp::Trainer trainer{world, strategy::Single{}, tasks::classifier, {.global_batch = 20}};
      made = trainer
                 .fit(train,
                      {.epochs = epochs,
                       .progress = false,
                       .checkpoint = {.directory = folder / "run"},
                       .validation = &train,
                       .metrics = {Scripted{&values, &calls}},
                       .callbacks = {pdp::EarlyStopping{.patience = 3, .watches = "scripted"}}},
                      [](const Epoch&) {})
                 .size();
    });
    return made;
  };
  CHECK(fit(3) == 3);  // has waited for one epoch
  CHECK(fit(9) == 2);
  CHECK(fit(9) == 0);  // the training has stopped early, and stays so
}

TEST_CASE("EarlyStopping and metrics refuse wrong options with a sentence", "[train][callback]") {
  const auto words = [](const pdp::EarlyStopping& stopping) {
    try {
      fit_one({}, 2, stopping);
    } catch (const pdp::ConfigError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  CHECK_THAT(words({.patience = 0}), Contains("EarlyStopping has patience = 0; expected 1 epoch or more"));
  CHECK_THAT(words({.least_change = pdp::not_a_number<double>()}), Contains("EarlyStopping has least_change = nan; expected 0 or more"));
  CHECK_THAT(words({.watches = "acuracy"}), Contains("there is no result 'acuracy'"));
}

TEST_CASE("KeepBest sets the parameters of the best epoch when fit ends, under every strategy", "[train][callback]") {
  const std::vector<double> values{5, 3, 4, 6};
  const auto train = tasks::samples(100);
  const auto parameters = [&](const auto& strategy, int count, int epochs, bool keeps) {
    return ranks<comm::Thread>(
               count,
               [&](comm::Thread& world) {
                 int calls = 0;
                 pdp::Trainer trainer{world, strategy, tasks::classifier, {.global_batch = 20, .seed = 4}};
                 pdp::KeepBest best{.watches = "scripted"};
                 pdp::FitOptions options{.epochs = epochs, .progress = false, .validation = &train, .metrics = {Scripted{&values, &calls}}};
                 if (keeps) options.callbacks = {std::ref(best)};
                 trainer.fit(train, options, [](const Epoch&) {});
                 if (keeps) CHECK(best.epoch == 1);
                 std::vector<float> all;
                 for (const auto& tensor : trainer.parameters()) all.insert(all.end(), tensor.values.begin(), tensor.values.end());
                 return all;
               })
        .front();
  };
  const auto check = [&](const auto& strategy, int count) {
    const auto best = parameters(strategy, count, 4, true);
    CHECK_FALSE(best.empty());
    CHECK(best == parameters(strategy, count, 2, false));
    CHECK(best != parameters(strategy, count, 4, false));
  };
  check(strategy::Single{}, 1);
  check(strategy::DataParallel{}, 2);
  check(strategy::Zero{.stage = 1}, 3);
  check(strategy::Zero{.stage = 3}, 2);
  check(strategy::Pipeline<>{.micro_batches = 2}, 3);
}

TEST_CASE("LearningRateLog writes the rate of each epoch", "[train][callback]") {
  const files::TemporaryFolder folder;
  fit_one({}, 3, pdp::LearningRateLog{folder / "rate.csv"});
  CHECK(files::read(folder / "rate.csv") == "epoch,learning_rate\n0,0.1\n1,0.1\n2,0.1\n");
}

TEST_CASE("A callback gets the results and the context of each epoch, and its members begin and end are called once", "[train][callback]") {
  struct Recorder {
    std::vector<std::string> seen{};
    void begin(pdp::FitContext& context) { seen.push_back(context.is_continued() ? "continued" : "begun"); }
    void operator()(const Epoch& epoch, pdp::FitContext& context) {
      context.values().insert_or_assign("seen", std::int64_t{epoch.number});
      seen.push_back(std::to_string(epoch.number) + (epoch.validation ? " validated" : ""));
    }
    void end(pdp::FitContext&) { seen.push_back("ended"); }
  } recorder;
  const files::TemporaryFolder folder;
  fit_one({.directory = folder / "run"}, 2, std::ref(recorder));
  fit_one({.directory = folder / "run"}, 3, std::ref(recorder));
  CHECK(recorder.seen == std::vector<std::string>{"begun", "0 validated", "1 validated", "ended", "continued", "2 validated", "ended"});
}

}  // namespace validation_test
