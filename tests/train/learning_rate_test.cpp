#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/reduce_on_plateau.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace learning_rate_test {

namespace nn = pdp::nn;
namespace optim = pdp::optim;
namespace strategy = pdp::strategy;
using pdp::comm::Thread;
using Samples = pdp::data::InMemory<std::int32_t>;

namespace {

template <class Schedule = optim::Linear>
auto task(float rate, const Schedule& schedule = {.steps = 40, .to = 0.1f}) {
  return pdp::Task{nn::Sequential{nn::Linear{6, 12}, nn::Tanh{}, nn::Linear{12, 3}}, pdp::loss::CrossEntropy{},
                   optim::Sgd{.lr = rate, .momentum = 0.9f}, schedule};
}
using Trainer = pdp::Trainer<Thread, strategy::AnyStrategy, std::remove_const_t<decltype(task(1))>>;
const pdp::TrainerOptions options{.global_batch = 12, .seed = 5};

Samples samples() {
  constexpr std::size_t count = 44;  // 4 batches an epoch, the last one of 8 rows
  std::vector<std::int32_t> classes;
  for (std::size_t i = 0; i < count; ++i) classes.push_back(static_cast<std::int32_t>(i % 3));
  return {pdp::Shape{6}, pdp::testing::normal(count * 6, 3), classes};
}

struct Way {
  strategy::AnyStrategy strategy;
  int ranks;
};
std::vector<Way> ways() {
  return {{strategy::Single{}, 1}, {strategy::DataParallel{}, 3}, {strategy::Zero{.stage = 3}, 2}, {strategy::Pipeline<>{}, 2}};
}

}  // namespace

TEST_CASE("set_learning_rate_factor(0.5) trains as half the learning rate does", "[train][learning_rate]") {
  const auto losses = [](const Way& way, float rate, double factor) {
    return pdp::testing::ranks<Thread>(way.ranks,
                                       [&](Thread& world) {
                                         Trainer trainer{world, way.strategy, task(rate), options};
                                         CHECK(trainer.learning_rate_factor() == 1);
                                         trainer.set_learning_rate_factor(factor);
                                         std::vector<double> found;
                                         trainer.fit(
                                             samples(), {.epochs = 3}, [](const pdp::Epoch&) {},
                                             [&](std::int64_t, const auto& totals) { found.push_back(totals.mean_loss()); });
                                         return found;
                                       })
        .front();
  };
  for (const Way& way : ways()) {
    CHECK(losses(way, 0.4f, 0.5) == losses(way, 0.2f, 1));
    CHECK(losses(way, 0.4f, 0.5) != losses(way, 0.4f, 1));
  }
}

TEST_CASE("set_learning_rate_factor throws on every rank if ranks differ or the factor is out of range", "[train][learning_rate]") {
  const auto told = [](double factor, double of_last) {
    return pdp::testing::ranks<Thread>(3, [&](Thread& world) -> std::string {
      Trainer trainer{world, strategy::DataParallel{}, task(0.1f), options};
      try {
        trainer.set_learning_rate_factor(world.rank() == 2 ? of_last : factor);
      } catch (const pdp::ConfigError& error) {
        return error.what();
      }
      return "";
    });
  };
  for (const std::string& each : told(0.5, 0.25))
    CHECK(each == "rank 2 was given learning_rate_factor = 0.25, but rank 0 learning_rate_factor = 0.5; give all ranks the same value");
  for (const std::string& each : told(-1, -1)) CHECK(each == "the factor of the learning rate is -1; give it a finite number from 0 on");
  for (const std::string& each : told(0.5, 0.5)) CHECK(each.empty());
}

TEST_CASE("A training with ReduceOnPlateau that is interrupted continues with its factor and state", "[train][learning_rate]") {
  struct Interrupted {};
  const files::TemporaryFolder folder;
  int number = 0;
  /// Trains for 6 epochs, or until the first step of epoch `last`. Returns the factors after the epochs, and then the losses.
  const auto fit = [&](const Way& way, const std::filesystem::path& to, int last) {
    return pdp::testing::ranks<Thread>(way.ranks,
                                       [&](Thread& world) {
                                         Trainer trainer{world, way.strategy, task(0.5f), options};
                                         optim::ReduceOnPlateau plateau{{.by = 0.5f, .patience = 0, .threshold = 0.2}};
                                         std::vector<double> factors, losses;
                                         try {
                                           trainer.fit(
                                               samples(), {.epochs = 6, .checkpoint = {.directory = to}},
                                               [&](const pdp::Epoch& epoch) {
                                                 auto& values = trainer.values();
                                                 if (const auto found = values.find("plateau"); found != values.end())
                                                   plateau.set_state(std::get<std::string>(found->second));
                                                 trainer.set_learning_rate_factor(plateau.factor_after(epoch.loss));
                                                 values["plateau"] = plateau.state();
                                                 factors.push_back(trainer.learning_rate_factor());
                                               },
                                               [&](std::int64_t step, const auto& totals) {
                                                 losses.push_back(totals.mean_loss());
                                                 if (step == 4 * last) throw Interrupted{};
                                               });
                                         } catch (const Interrupted&) {
                                           losses.pop_back();
                                         }
                                         factors.insert(factors.end(), losses.begin(), losses.end());
                                         return factors;
                                       })
        .front();
  };
  for (const Way& way : ways()) {
    const auto whole = fit(way, folder / std::to_string(number), -1);
    REQUIRE(whole.size() == 6 + 24);
    CHECK(whole[5] < 1);
    const std::filesystem::path to = folder / std::to_string(++number);
    const auto first = fit(way, to, 3), second = fit(way, to, -1);
    REQUIRE(first.size() == 3 + 12);
    REQUIRE(second.size() == 3 + 12);
    CHECK(std::vector<double>(second.begin(), second.begin() + 3) == std::vector<double>(whole.begin() + 3, whole.begin() + 6));
    CHECK(std::vector<double>(second.begin() + 3, second.end()) == std::vector<double>(whole.begin() + 18, whole.end()));
    ++number;
  }
}

TEST_CASE("Trainer throws on every rank if the schedule has a parameter out of range", "[train][learning_rate]") {
  const auto told = pdp::testing::ranks<Thread>(3, [](Thread& world) -> std::string {
    try {
      pdp::Trainer trainer{world, strategy::DataParallel{}, task(0.1f, optim::StepDecay{.steps = 0}), options};
    } catch (const pdp::ConfigError& error) {
      return error.what();
    }
    return "";
  });
  for (const std::string& each : told)
    CHECK(each == "the learning-rate schedule StepDecay has steps = 0; give it a number of steps from 1 on");
}

}  // namespace learning_rate_test
