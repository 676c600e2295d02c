#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/averages.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace averages_test {

namespace nn = pdp::nn;
namespace optim = pdp::optim;
namespace strategy = pdp::strategy;
using pdp::checkpoint::Tensor;
using pdp::comm::Thread;

namespace {

constexpr float decay = 0.8f;
constexpr optim::ParameterGroup frozen_bias{.chooses = [](const optim::ParameterInfo& of) { return of.name == "2.bias"; },
                                            .is_frozen = true};
auto task() {
  return pdp::Task{nn::Sequential{nn::Linear{6, 24}, nn::Tanh{}, nn::Linear{24, 12}, nn::Tanh{}, nn::Linear{12, 4}},
                   pdp::loss::MeanSquaredError{},
                   optim::Grouped{optim::Averaged{optim::AdamW{.lr = 0.02f}, decay}, optim::no_decay_on_biases_and_norms, frozen_bias}};
}
using Trainer = pdp::Trainer<Thread, strategy::AnyStrategy, std::remove_const_t<decltype(task())>>;
constexpr pdp::TrainerOptions options{.global_batch = 12, .seed = 5, .clip_norm = 1};

struct Way {
  std::string name;
  int ranks;
  strategy::AnyStrategy strategy;
};

std::vector<Way> ways() {
  using Schedule = strategy::OneForwardOneBackward;
  std::vector<Way> all{{"single", 1, strategy::Single{}}};
  for (const int ranks : {2, 3}) {
    all.push_back({"data", ranks, strategy::DataParallel{}});
    for (const int stage : {1, 2, 3}) all.push_back({"zero " + std::to_string(stage), ranks, strategy::Zero{.stage = stage}});
    all.push_back({"pipeline", ranks, strategy::Pipeline<Schedule>{.micro_batches = 3}});
  }
  all.push_back({"tensor", 2, strategy::TensorParallel{}});
  all.push_back({"hybrid", 8, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = 2}});
  return all;
}

pdp::data::InMemory<float> samples() {
  constexpr std::size_t count = 34;
  return {pdp::Shape{6}, pdp::testing::normal(count * 6, 3), pdp::testing::normal(count * 4, 4), pdp::Shape{4}};
}

void check_equal(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t t = 0; t < found.size(); ++t) CHECK(found[t].values == expected[t].values);
}

struct Run {
  std::vector<double> losses;
  std::vector<std::vector<Tensor>> steps;  // the parameters after each step
  std::vector<Tensor> first, averages, after;
  double loss_of_averages = 0, loss_of_others = 0;
};

}  // namespace

TEST_CASE("with_averages computes with the moving average of the parameters under every strategy", "[train][averages]") {
  const auto data = samples();
  for (const Way& way : ways()) {
    CAPTURE(way.name, way.ranks);
    const Run run = pdp::testing::ranks<Thread>(way.ranks, [&](Thread& world) {
                      Trainer trainer{world, way.strategy, task(), options};
                      Run made;
                      const auto parameters = [&] { return trainer.parameters(); };
                      made.first = pdp::with_averages(trainer, parameters);
                      trainer.fit(
                          data, {.epochs = 2}, [](const pdp::Epoch&) {},
                          [&](std::int64_t, const auto& totals) {
                            made.losses.push_back(totals.mean_loss());
                            made.steps.push_back(parameters());
                            made.averages = pdp::with_averages(trainer, parameters);
                            made.after = parameters();
                          });
                      made.loss_of_averages = pdp::with_averages(trainer, [&] { return trainer.evaluate(data).mean_loss(); });
                      made.loss_of_others = trainer.evaluate(data).mean_loss();
                      return made;
                    }).front();
    REQUIRE(run.steps.size() == 6);
    check_equal(run.after, run.steps.back());
    for (std::size_t t = 0; t < run.averages.size(); ++t) {
      CAPTURE(run.averages[t].name);
      std::vector<double> average(run.averages[t].values.size());
      for (std::size_t step = 0; step < run.steps.size(); ++step) {
        const double kept = step == 0 ? 0 : static_cast<double>(decay);
        for (std::size_t i = 0; i < average.size(); ++i)
          average[i] = kept * average[i] + (1 - kept) * static_cast<double>(run.steps[step][t].values[i]);
      }
      for (std::size_t i = 0; i < average.size(); ++i)
        REQUIRE(static_cast<double>(run.averages[t].values[i]) == Approx(average[i]).margin(1e-6));
      CHECK((run.averages[t].values == run.steps.back()[t].values) == (run.averages[t].name == "2.bias"));
    }
    // The same parameters in a trainer without averages give the same loss.
    const double expected = pdp::testing::ranks<Thread>(1, [&](Thread& world) {
                              Trainer trainer{world, strategy::Single{}, task(), options};
                              CHECK(trainer.parameters().front().values == run.first.front().values);
                              trainer.set_parameters(run.averages, "the test");
                              return trainer.evaluate(data).mean_loss();
                            }).front();
    CHECK_THAT(run.loss_of_averages, WithinRel(expected, 1e-5));
    CHECK(run.loss_of_others != run.loss_of_averages);
  }
}

TEST_CASE("A training continues after with_averages as without it, and from a checkpoint with the same averages", "[train][averages]") {
  const files::TemporaryFolder folder;
  const auto data = samples();
  for (const Way& way : ways()) {
    CAPTURE(way.name, way.ranks);
    const auto run = [&](bool looks, bool loads, int epochs) {
      return pdp::testing::ranks<Thread>(way.ranks,
                                         [&](Thread& world) {
                                           Trainer trainer{world, way.strategy, task(), options};
                                           if (loads) trainer.load(folder / way.name);
                                           Run made;
                                           trainer.fit(
                                               data, {.epochs = epochs}, [](const pdp::Epoch&) {},
                                               [&](std::int64_t step, const auto& totals) {
                                                 made.losses.push_back(totals.mean_loss());
                                                 if (looks) pdp::with_averages(trainer, [&] { return trainer.evaluate(data).rows; });
                                                 if (looks && step == 2) trainer.save(folder / way.name);
                                               });
                                           made.averages = pdp::with_averages(trainer, [&] { return trainer.parameters(); });
                                           return made;
                                         })
          .front();
    };
    const Run plain = run(false, false, 2), looked = run(true, false, 2), resumed = run(false, true, 2);
    CHECK(looked.losses == plain.losses);
    check_equal(looked.averages, plain.averages);
    CHECK(resumed.losses == std::vector<double>(plain.losses.begin() + 3, plain.losses.end()));
    check_equal(resumed.averages, plain.averages);
    std::filesystem::remove_all(folder / way.name);
  }
}

TEST_CASE("Steps and checkpoints in with_averages throw, and the parameters are in their place afterwards", "[train][averages]") {
  const files::TemporaryFolder folder;
  pdp::testing::ranks<Thread>(2, [&](Thread& world) {
    Trainer trainer{world, strategy::Zero{.stage = 2}, task(), options};
    const auto data = samples();
    trainer.fit(data, {.epochs = 1}, [](const pdp::Epoch&) {});
    const std::vector<Tensor> before = trainer.parameters();
    const auto is_refused = [&](const auto& call) {
      try {
        pdp::with_averages(trainer, call);
      } catch (const pdp::ConfigError& error) {
        return std::string{error.what()}.find("their averages are in their place") != std::string::npos;
      }
      return false;
    };
    const std::vector<float> x(6 * 6), y(6 * 4);
    const bool refused = is_refused([&] { trainer.step(x, y); }) && is_refused([&] { trainer.save(folder / "run"); }) &&
                         is_refused([&] { pdp::with_averages(trainer, [] {}); });
    if (!refused) throw std::runtime_error{"a call was not refused"};
    const std::vector<Tensor> after = trainer.parameters();
    for (std::size_t t = 0; t < before.size(); ++t)
      if (before[t].values != after[t].values) throw std::runtime_error{"the parameters have changed"};
  });
}

}  // namespace averages_test
