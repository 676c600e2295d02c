#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "catch.hpp"

namespace trainer_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using pdp::Index, pdp::Shape;
using pdp::strategy::AnyStrategy, pdp::strategy::DataParallel;
using pdp::testing::ranks;
using Samples = pdp::data::InMemory<std::int32_t>;

namespace {

constexpr nn::Sequential model{nn::Linear{6, 16}, nn::Tanh{}, nn::Linear{16, 3}};
constexpr pdp::Task classifier{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.2f},
                               pdp::optim::Linear{.steps = 1000, .to = 0.1f}};
using Trainer = pdp::Trainer<comm::Thread, DataParallel, std::remove_const_t<decltype(classifier)>>;

Samples samples(std::size_t count) {
  const auto x = pdp::testing::normal(count * 6, 11);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 6) classes.push_back(row[0] > 0 ? 2 : row[1] > 0 ? 1 : 0);
  return {Shape{6}, x, classes};
}

pdp::TrainerOptions options(Index global_batch) { return {.global_batch = global_batch, .seed = 5}; }

struct Fit {
  std::vector<double> losses;
  std::vector<double> rows;
  std::vector<std::int64_t> steps;
  std::vector<pdp::Epoch> epochs;
};

Fit fit(comm::Thread& world, const Samples& data, const pdp::FitOptions& how, Index global_batch = 32) {
  Trainer trainer{world, DataParallel{}, classifier, options(global_batch)};
  Fit found;
  trainer.fit(
      data, how, [&](const pdp::Epoch& epoch) { found.epochs.push_back(epoch); },
      [&](std::int64_t step, const Trainer::Totals& totals) {
        found.steps.push_back(step);
        found.losses.push_back(totals.mean_loss());
        found.rows.push_back(totals.rows);
      });
  return found;
}

/// Returns the exception that f throws on a world of one rank.
template <class F>
pdp::testing::Thrown refused(F&& f) {
  return pdp::testing::errors<comm::Thread>(1, std::forward<F>(f)).front();
}

}  // namespace

TEST_CASE("Trainer::fit learns and gives the same losses for every number of ranks", "[train]") {
  const Samples data = samples(210);  // 7 batches an epoch, the last one of 18 rows
  const Fit one = ranks<comm::Thread>(1, [&](comm::Thread& world) { return fit(world, data, {.epochs = 6}); }).front();
  CHECK(one.losses.back() < 0.6 * one.losses.front());
  REQUIRE(one.losses.size() == 42);
  for (std::size_t step = 0; step < one.losses.size(); ++step) {
    CHECK(one.steps[step] == static_cast<std::int64_t>(step));
    CHECK(one.rows[step] == (step % 7 == 6 ? 18 : 32));
  }
  for (const int size : {2, 3, 4})
    for (const Fit& each : ranks<comm::Thread>(size, [&](comm::Thread& world) { return fit(world, data, {.epochs = 6}); })) {
      CHECK(each.rows == one.rows);
      for (std::size_t step = 0; step < 20; ++step) CHECK(each.losses[step] == Approx(one.losses[step]).epsilon(1e-5));
      CHECK(each.epochs.back().loss == Approx(one.epochs.back().loss).epsilon(1e-4));
      CHECK(each.epochs.back().accuracy == Approx(one.epochs.back().accuracy).margin(0.01));
    }
}

TEST_CASE("Trainer::fit passes the mean loss over all samples of an epoch to on_epoch, on every rank", "[train]") {
  const Samples data = samples(70);
  for (const Fit& each : ranks<comm::Thread>(3, [&](comm::Thread& world) { return fit(world, data, {.epochs = 3}); })) {
    REQUIRE(each.epochs.size() == 3);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      double loss = 0;
      for (std::size_t step = 3 * epoch; step < 3 * epoch + 3; ++step) loss += each.losses[step] * each.rows[step] / 70;
      CHECK(each.epochs[epoch].number == static_cast<int>(epoch));
      CHECK(each.epochs[epoch].loss == Approx(loss));
      CHECK((each.epochs[epoch].accuracy >= 0 && each.epochs[epoch].accuracy <= 1));
      CHECK(each.epochs[epoch].seconds > 0);
    }
  }
}

TEST_CASE("Trainer::fit shuffles samples by the seed unless shuffle is false", "[train]") {
  const Samples data = samples(64);
  const auto first_losses = [&](bool shuffle) {
    return ranks<comm::Thread>(1, [&](comm::Thread& world) { return fit(world, data, {.epochs = 1, .shuffle = shuffle}).losses.front(); })
        .front();
  };
  CHECK(first_losses(true) == first_losses(true));
  CHECK(first_losses(true) != first_losses(false));
}

TEST_CASE("Trainer::fit continues with the next epoch and its sample order when it is called again", "[train]") {
  const Samples data = samples(70);
  const Fit at_once = ranks<comm::Thread>(1, [&](comm::Thread& world) { return fit(world, data, {.epochs = 3}); }).front();
  const Fit in_turn = ranks<comm::Thread>(1, [&](comm::Thread& world) {
                        Trainer trainer{world, DataParallel{}, classifier, options(32)};
                        Fit found;
                        for (int call = 0; call < 3; ++call)
                          trainer.fit(
                              data, {.epochs = 1}, [&](const pdp::Epoch& epoch) { found.epochs.push_back(epoch); },
                              [&](std::int64_t, const Trainer::Totals& totals) { found.losses.push_back(totals.mean_loss()); });
                        return found;
                      }).front();
  CHECK(in_turn.losses == at_once.losses);
  REQUIRE(in_turn.epochs.size() == 3);
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(in_turn.epochs[static_cast<std::size_t>(epoch)].number == epoch);
}

TEST_CASE("Trainer handles a batch of the whole dataset and more ranks than samples", "[train]") {
  const Samples data = samples(3);
  const auto found = ranks<comm::Thread>(5, [&](comm::Thread& world) {
    const Fit made = fit(world, data, {.epochs = 4}, 3);
    Trainer trainer{world, DataParallel{}, classifier, options(3)};
    return std::pair{made, trainer.evaluate(data)};
  });
  const auto alone = ranks<comm::Thread>(1, [&](comm::Thread& world) {
                       const Fit made = fit(world, data, {.epochs = 4}, 3);
                       Trainer trainer{world, DataParallel{}, classifier, options(3)};
                       return std::pair{made, trainer.evaluate(data)};
                     }).front();
  for (const auto& [made, totals] : found) {
    CHECK(made.losses.back() == Approx(alone.first.losses.back()).epsilon(1e-5));
    CHECK(totals.rows == 3);
    CHECK(totals.loss == Approx(alone.second.loss).epsilon(1e-6));
    CHECK(totals.correct == alone.second.correct);
  }
}

TEST_CASE("Trainer::evaluate counts every sample once for every dataset size, batch and number of ranks", "[train]") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{101}}) {
    const Samples data = samples(count);
    std::vector<pdp::engine::Totals> found;
    for (const int size : {1, 2, 3, 4})
      for (const Index batch : {1, 4, 64})
        for (const auto& [totals, accuracy] : ranks<comm::Thread>(size, [&](comm::Thread& world) {
               Trainer trainer{world, DataParallel{.accumulate = batch == 4 ? 3 : 1}, classifier, options(batch)};
               return std::pair{trainer.evaluate(data), trainer.accuracy(data)};
             })) {
          found.push_back(totals);
          CHECK(accuracy == totals.accuracy());
        }
    for (const auto& totals : found) {
      CHECK(totals.rows == static_cast<double>(count));
      CHECK(totals.loss == Approx(found.front().loss).epsilon(1e-6));
      CHECK(totals.correct == found.front().correct);
    }
  }
}

TEST_CASE("Trainer with Pipeline trains and evaluates like Single and predicts on every rank", "[train][pipeline]") {
  const Samples data = samples(70);
  const std::vector<float> x = pdp::testing::normal(23 * 6, 2);
  const auto train = [&](auto& world, const AnyStrategy& strategy) {
    pdp::Trainer trainer{world, strategy, classifier, options(16)};
    std::vector<double> losses;
    trainer.fit(
        data, {.epochs = 2, .progress = false}, [](const pdp::Epoch&) {},
        [&](std::int64_t, const auto& totals) { losses.push_back(totals.mean_loss()); });
    return std::tuple{losses, trainer.evaluate(data), trainer.predict(x)};
  };
  const auto [losses, totals, outputs] =
      ranks<comm::Thread>(1, [&](comm::Thread& world) { return train(world, pdp::strategy::Single{}); }).front();
  for (const auto& [its_losses, its_totals, its_outputs] : ranks<comm::Thread>(
           2, [&](comm::Thread& world) { return train(world, pdp::strategy::Pipeline<pdp::plan::ZeroBubble>{.micro_batches = 3}); })) {
    CHECK(pdp::testing::relative_difference(its_losses, losses) < 1e-5);
    CHECK(its_totals.rows == 70);
    CHECK(its_totals.correct == totals.correct);
    CHECK(its_totals.loss == Approx(totals.loss).epsilon(1e-5));
    CHECK(pdp::testing::relative_difference(its_outputs, outputs) < 1e-4);
  }
}

TEST_CASE("Trainer::set_parameters and parameters carry a model from Single to every strategy and back", "[train][checkpoint]") {
  using namespace pdp::strategy;
  const Samples data = samples(70);
  const auto tensors_of = [&](int size, const AnyStrategy& strategy, const std::vector<pdp::checkpoint::Tensor>& start, int epochs) {
    return ranks<comm::Thread>(size,
                               [&](comm::Thread& world) {
                                 pdp::Trainer trainer{world, strategy, classifier, options(16)};
                                 if (!start.empty()) trainer.set_parameters(start, "a test");
                                 trainer.fit(data, {.epochs = epochs, .progress = false}, [](const pdp::Epoch&) {});
                                 const auto tensors = trainer.parameters();
                                 if (world.rank() > 0 && !tensors.empty()) throw std::logic_error{"tensors beside rank 0"};
                                 return tensors;
                               })
        .front();
  };
  const auto start = tensors_of(1, Single{}, {}, 1);
  REQUIRE(start.size() == 4);
  const auto expected = tensors_of(1, Single{}, start, 1);
  const auto check = [&](int size, const AnyStrategy& strategy) {
    CAPTURE(size, start.size());
    const auto same = tensors_of(size, strategy, start, 0), trained = tensors_of(size, strategy, start, 1);
    REQUIRE(same.size() == start.size());
    for (std::size_t i = 0; i < start.size(); ++i) {
      CHECK(same[i].name == start[i].name);
      CHECK(same[i].shape == start[i].shape);
      CHECK(same[i].values == start[i].values);
      CHECK(pdp::testing::relative_difference(trained[i].values, expected[i].values) < 1e-4);
    }
  };
  for (const int size : {1, 2, 3}) {
    check(size, DataParallel{});
    for (const int stage : {1, 2, 3})
      for (const Index elements : {1, 1000}) check(size, Zero{.stage = stage, .unit_elements = elements});
    check(size, Pipeline<>{.micro_batches = 2});
  }
}

TEST_CASE("NonFinite::skip keeps the loss of an epoch finite if a sample is NaN", "[train][gradient]") {
  auto x = pdp::testing::normal(64 * 6, 11);
  x[40 * 6 + 2] = std::nanf("");
  const Samples data{Shape{6}, x, std::vector<std::int32_t>(64, 1)};
  const auto reports = ranks<comm::Thread>(2, [&](comm::Thread& world) {
    auto how = options(16);
    how.non_finite = pdp::plan::NonFinite::skip;
    Trainer trainer{world, DataParallel{}, classifier, how};
    int skipped = 0;
    double loss = 0;
    trainer.fit(
        data, {.epochs = 2, .progress = false}, [&](const pdp::Epoch& epoch) { loss = epoch.loss; },
        [&](std::int64_t, const Trainer::Totals& totals) { skipped += totals.skipped ? 1 : 0; });
    return std::pair{skipped, loss};
  });
  for (const auto& [skipped, loss] : reports) {
    CHECK(skipped == 2);  // once in each epoch
    CHECK(std::isfinite(loss));
    CHECK(loss > 0);
  }
}

TEST_CASE("An epoch whose steps are all skipped reports NaN, not a loss of 0", "[train][gradient]") {
  const Samples data{Shape{6}, std::vector<float>(8 * 6, std::nanf("")), std::vector<std::int32_t>(8, 1)};
  const auto means = ranks<comm::Thread>(1, [&](comm::Thread& world) {
    auto how = options(4);
    how.non_finite = pdp::plan::NonFinite::skip;
    Trainer trainer{world, DataParallel{}, classifier, how};
    std::vector<double> found;
    trainer.fit(data, {.epochs = 2, .progress = false}, [&](const pdp::Epoch& epoch) {
      found.insert(found.end(), {epoch.loss, epoch.accuracy});
    });
    return found;
  });
  CHECK(means.front().size() == 4);
  for (const double mean : means.front()) CHECK(std::isnan(mean));
}

TEST_CASE("Trainer::check_parameters throws on every rank and names a parameter that differs between ranks", "[train]") {
  using namespace pdp::strategy;
  const Samples data = samples(70);
  std::mutex mutex;
  std::vector<std::string> messages;
  const auto check = [&](int size, const AnyStrategy& strategy, int changed, const char* name, bool is_found) {
    messages.clear();
    ranks<comm::Thread>(size, [&](comm::Thread& world) {
      pdp::Trainer trainer{world, strategy, classifier, options(16)};
      trainer.fit(data, {.progress = false}, [](const pdp::Epoch&) {});
      trainer.check_parameters();  // training keeps them equal
      if (world.rank() == changed)
        trainer.engine().stage().for_each_parameter([&](const nn::Parameter& parameter, std::span<float> values) {
          if (parameter.full_name() == name) values.back() = std::nextafter(values.back(), 1.0f);
        });
      try {
        trainer.check_parameters();
      } catch (const pdp::ParametersDiffer& error) {
        const std::lock_guard lock{mutex};
        messages.emplace_back(error.what());
      }
      world.barrier();  // the world still works
    });
    CAPTURE(size, changed, name);
    REQUIRE(messages.size() == (is_found ? static_cast<std::size_t>(size) : 0));
    for (const std::string& message : messages)
      CHECK(message ==
            pdp::text(name, " differs between the ranks that hold it: rank ", changed == 0 ? 1 : changed,
                      " has other values than rank 0; look for code that changes parameters on one rank only, between steps or from "
                      "a file"));
  };
  for (const int size : {2, 3})
    for (const int changed : {0, size - 1})
      for (const char* name : {"0.weight", "0.bias", "2.bias"}) {
        check(size, DataParallel{}, changed, name, true);
        check(size, Zero{.stage = 2}, changed, name, true);
        check(size, Zero{.stage = 3}, changed, name, false);  // no two ranks hold the same slice
        check(size, Pipeline<>{.micro_batches = 2}, changed, name, false);
      }
  check(1, Single{}, 0, "0.weight", false);
}

TEST_CASE("Trainer::predict returns the outputs of any number of rows in order", "[train]") {
  const std::vector<float> x = pdp::testing::normal(23 * 6, 2);
  ranks<comm::Thread>(1, [&](comm::Thread& world) {
    Trainer trainer{world, DataParallel{}, classifier, options(5)};
    std::vector<float> one_by_one;
    for (std::size_t row = 0; row < 23; ++row)
      for (const float each : trainer.predict(std::span{x}.subspan(row * 6, 6))) one_by_one.push_back(each);
    const auto together = trainer.predict(x);
    if (together.size() != 23 * 3 || pdp::testing::relative_difference(together, one_by_one) > 1e-6)
      throw std::logic_error{"other outputs"};
    if (!trainer.predict({}).empty()) throw std::logic_error{"outputs of nothing"};
  });
}

TEST_CASE("Trainer::step accepts a different number of rows on each rank", "[train]") {
  const auto x = pdp::testing::normal(10 * 6, 2);
  const std::vector<std::int32_t> classes{0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
  const auto losses = [&](int size, bool counted) {
    return ranks<comm::Thread>(
               size,
               [&](comm::Thread& world) {
                 Trainer trainer{world, DataParallel{}, classifier, options(20)};
                 const std::size_t first = world.rank() == 0 ? 0 : 3, rows = size == 1 ? 10 : world.rank() == 0 ? 3 : 7;
                 std::vector<double> each;
                 for (int step = 0; step < 5; ++step)
                   each.push_back(
                       trainer.step(std::span{x}.subspan(first * 6, rows * 6), std::span{classes}.subspan(first, rows), counted ? 10 : 0)
                           .mean_loss());
                 return each;
               })
        .front();
  };
  CHECK(pdp::testing::relative_difference(losses(2, false), losses(1, false)) < 1e-6);
  CHECK(losses(2, true) == losses(2, false));
}

TEST_CASE("Trainer::step applies the factor of the learning-rate schedule", "[train]") {
  constexpr pdp::Task ending{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.2f}, pdp::optim::Linear{.steps = 3, .to = 0}};
  const auto x = pdp::testing::normal(4 * 6, 2);
  const std::vector<std::int32_t> classes{0, 1, 2, 0};
  const auto losses = ranks<comm::Thread>(1, [&](comm::Thread& world) {
                        pdp::Trainer trainer{world, DataParallel{}, ending, options(4)};
                        std::vector<double> each;
                        for (int step = 0; step < 6; ++step) each.push_back(trainer.step(x, classes).mean_loss());
                        return each;
                      }).front();
  CHECK(losses[1] < losses[0]);
  CHECK(losses[3] < losses[2]);
  CHECK(losses[4] == losses[3]);  // the learning rate is zero by then
  CHECK(losses[5] == losses[3]);
}

TEST_CASE("Trainer learns vector targets with MeanSquaredError", "[train]") {
  constexpr pdp::Task line{nn::Sequential{nn::Linear{2, 2}}, pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{.lr = 0.2f}};
  const auto x = pdp::testing::normal(64 * 2, 1);
  std::vector<float> y;
  for (auto row = x.begin(); row != x.end(); row += 2) y.insert(y.end(), {2 * row[0] - row[1] + 1, 0.5f * row[1]});
  const pdp::data::InMemory<float> data{Shape{2}, x, y, Shape{2}};
  const auto outputs = ranks<comm::Thread>(2, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, DataParallel{}, line, options(16)};
    trainer.fit(data, {.epochs = 60}, [](const pdp::Epoch&) {});
    if (trainer.evaluate(data).mean_loss() > 1e-6) throw std::logic_error{"nothing was learnt"};
    return trainer.predict(std::vector<float>{1, 2});
  });
  for (const auto& each : outputs) {
    CHECK(each[0] == Approx(1).margin(1e-2));
    CHECK(each[1] == Approx(1).margin(1e-2));
  }
}

TEST_CASE("Trainer rejects invalid options, datasets and batches, and says what to do", "[train]") {
  const Samples data = samples(10);
  const auto made = [&](const pdp::TrainerOptions& with) {
    return refused([&](comm::Thread& world) { Trainer{world, DataParallel{}, classifier, with}; });
  };
  const auto fitted = [](const auto& to, Index batch) {
    return refused([&](comm::Thread& world) {
      Trainer trainer{world, DataParallel{}, classifier, options(batch)};
      trainer.fit(to, {.epochs = 1}, [](const pdp::Epoch&) {});
    });
  };
  SECTION("without a global batch") {
    const auto error = made({.seed = 1});
    CHECK(error.is<pdp::ConfigError>());
    CHECK_THAT(error.what(), Contains("global_batch = 0 was given") && Contains("{.global_batch = 256}"));
  }
  SECTION("without a thread") {
    const auto error = made({.global_batch = 4, .threads = 0});
    CHECK(error.is<pdp::ConfigError>());
    CHECK_THAT(error.what(), Contains("expected threads from 1 to 1024, as in {.threads = 2}, found 0"));
  }
  SECTION("a batch larger than the dataset is one short batch") { CHECK_FALSE(fitted(data, 11)); }
  SECTION("samples of another shape") {
    const auto error = fitted(Samples{Shape{2, 4}, std::vector<float>(80), std::vector<std::int32_t>(10)}, 5);
    CHECK(error.is<pdp::ShapeError>());
    CHECK_THAT(error.what(), Contains("the dataset has samples of shape [2, 4], but the model takes 6 values"));
  }
  SECTION("two targets for each sample") {
    const auto error = fitted(Samples{Shape{6}, std::vector<float>(60), std::vector<std::int32_t>(20), Shape{2}}, 5);
    CHECK(error.is<pdp::ShapeError>());
    CHECK_THAT(error.what(), Contains("targets of shape [2], but the loss takes 1"));
  }
  SECTION("a class without an output") {
    const auto error = fitted(Samples{Shape{6}, std::vector<float>(60), std::vector<std::int32_t>(10, 3)}, 5);
    CHECK(error.is<pdp::ConfigError>());
    CHECK_THAT(error.what(), Contains("is of class 3, but the model gives 3 outputs"));
  }
  SECTION("an input shape that the model does not accept") {
    const auto error = made({.global_batch = 4, .input = Shape{7}});
    CHECK(error.is<pdp::ShapeError>());
    CHECK_THAT(error.what(), Contains("layer 0 (Linear) expects 6 values a sample, but its input has 7"));
  }
  SECTION("an incomplete row") {
    const auto error = refused([](comm::Thread& world) {
      Trainer trainer{world, DataParallel{}, classifier, options(4)};
      trainer.step(std::vector<float>(13), std::vector<std::int32_t>(2));
    });
    CHECK(error.is<pdp::ShapeError>());
    CHECK_THAT(error.what(), Contains("the batch has 13 values, which is not a multiple of the sample size 6"));
  }
  SECTION("more rows than the batch") {
    const auto error = refused([](comm::Thread& world) {
      Trainer trainer{world, DataParallel{}, classifier, options(4)};
      trainer.step(std::vector<float>(30), std::vector<std::int32_t>(5));
    });
    CHECK(error.is<pdp::ShapeError>());
    CHECK_THAT(error.what(), Contains("the batch has 5 rows, but there is memory for at most 4"));
  }
}

TEST_CASE("TrainerOptions::useless_threads explains why a rank cannot use its threads", "[train]") {
  const bool has_threads = pdp::cpu::has_threads();
  const auto told = [](int threads, int cores) {
    return pdp::TrainerOptions{.global_batch = 1, .threads = threads}.useless_threads(cores);
  };
  CHECK(told(1, 1).empty());
  CHECK(told(1, 0).empty());
  CHECK(told(2, 2).empty() == has_threads);
  CHECK(told(2, 0).empty() == has_threads);
  CHECK_THAT(told(3, 2), StartsWith("threads = 3 was given, but ") &&
                             EndsWith(has_threads ? "this process may use only 2 cores"
                                                  : "without pdp::onednn a rank uses one; link it, with a oneDNN that has OpenMP"));
}

TEST_CASE("Trainer with two threads differs from one thread only by rounding", "[train]") {
  const Samples data = samples(96);
  const auto learnt = [&](int threads) {
    return ranks<comm::Thread>(2, [&](comm::Thread& world) {
      pdp::TrainerOptions with = options(32);
      with.threads = threads;
      Trainer trainer{world, DataParallel{}, classifier, with};
      trainer.fit(data, {.epochs = 3}, [](const pdp::Epoch&) {});
      return trainer.parameters();
    })[0];
  };
  const auto one = learnt(1), two = learnt(2);
  REQUIRE(one.size() == 4);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(pdp::testing::relative_difference(two[i].values, one[i].values) < 1e-5);
}

TEST_CASE("Trainer::fit throws on every rank if one rank has a class without an output", "[train]") {
  std::vector<std::int32_t> classes(40);
  classes[17] = 9;
  const Samples data{Shape{6}, std::vector<float>(240), classes};
  const auto errors =
      pdp::testing::errors<comm::Thread>(3, [&](comm::Thread& world) { fit(world, data, {.epochs = 1, .shuffle = false}, 20); });
  int causes = 0;
  for (const auto& error : errors) {
    CHECK(error);
    causes += error.is<pdp::ConfigError>() ? 1 : 0;
  }
  CHECK(causes == 1);
}

TEST_CASE("Trainer needs the input option for a model of any width", "[train]") {
  constexpr pdp::Task any{nn::Sequential{nn::Tanh{}}, pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{}};
  const auto make = [&](const Shape& input) {
    return refused([&](comm::Thread& world) { pdp::Trainer{world, DataParallel{}, any, {.global_batch = 2, .input = input}}; });
  };
  CHECK(make(Shape{}).is<pdp::ConfigError>());
  CHECK_THAT(make(Shape{}).what(), Contains("the model takes samples of several shapes") && Contains("{.input = Shape{784}}"));
  CHECK_FALSE(make(Shape{3}));
}

TEST_CASE("Trainer throws PlanError for a plan that never updates a unit", "[train]") {
  struct Forgetful {
    [[nodiscard]] pdp::plan::Plan plan(const nn::Outline& outline, pdp::plan::RankInWorld at) const {
      auto plan = DataParallel{}.plan(outline, at);
      std::erase_if(plan.step, [](const auto& i) { return i.op == pdp::plan::Op::update; });
      return plan;
    }
  };
  const auto error = refused([](comm::Thread& world) { pdp::Trainer{world, Forgetful{}, classifier, options(4)}; });
  CHECK(error.is<pdp::PlanError>());
  CHECK_THAT(error.what(), Contains("the plan cannot run: rank 0 at the end of its step leaves a unit that is never updated") ||
                               Contains("the plan cannot run: rank 0, step instruction"));
}

TEST_CASE("Trainer::fit and evaluate name the sample whose class has no output", "[train]") {
  constexpr Index bad = 57, count = 80, batch = 12;
  std::vector<std::int32_t> classes(count, 1);
  classes[bad] = 11;
  const Samples data{Shape{6}, std::vector<float>(count * 6), classes};
  const std::string fault = " is of class 11, but the model gives 3 outputs, for classes 0 to 2; ";
  pdp::data::Sampler sampler{count, batch, options(batch).seed};
  sampler.start(1);
  Index step = sampler.steps();  // one epoch comes before
  for (Index number = 0; number < sampler.steps(); ++number)
    if (std::ranges::count(sampler.batch(number), bad) == 1) step += number;
  std::vector<std::int32_t> good(count, 1);
  const Samples first{Shape{6}, std::vector<float>(count * 6), good};
  for (const auto& run : {std::pair{1, 1}, {1, 3}, {3, 1}, {2, 2}}) {
    const int size = run.first, accumulate = run.second;
    CAPTURE(size, accumulate);
    const auto message = [&](const auto& call) -> std::string {
      try {
        ranks<comm::Thread>(size, [&](comm::Thread& world) {
          Trainer trainer{world, DataParallel{.accumulate = accumulate}, classifier, options(batch)};
          call(trainer);
        });
      } catch (const pdp::LabelError& error) {
        return error.what();
      }
      return "no LabelError";
    };
    CHECK_THAT(message([&](auto& trainer) {
                 trainer.fit(first, {.epochs = 1}, [](const pdp::Epoch&) {});
                 trainer.fit(data, {.epochs = 1}, [](const pdp::Epoch&) {});
               }),
               StartsWith(pdp::text("step ", step, ": sample 57 of the dataset (counted from 0)", fault)));
    CHECK_THAT(message([&](auto& trainer) { static_cast<void>(trainer.evaluate(data)); }),
               StartsWith("evaluation: sample 57 of the dataset (counted from 0)" + fault));
  }
}

}  // namespace trainer_test
