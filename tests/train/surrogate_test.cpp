#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/safetensors.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/metric/regression.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/trainer.hpp>

#include <array>
#include <cstddef>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"

/// A surrogate model with a validation after each epoch, as PyTorch trains it; see tests/parity/make_surrogate.py.
namespace surrogate_test {

using pdp::comm::Thread;

namespace {

std::string recorded(const std::string& name) { return std::string{PDP_TEST_PARITY} + "/" + name; }

pdp::data::InMemory<float> set(const std::string& name, std::size_t rows) {
  const pdp::data::SafeTensors file{recorded("surrogate.safetensors")};
  std::vector<float> x(rows * 10), y(rows);
  file.read(name + ".x", std::span{x});
  file.read(name + ".y", std::span{y});
  return {pdp::Shape{10}, x, y};
}

/// Returns PyTorch's loss, validation loss, mean absolute error and R2 of each epoch.
std::vector<std::array<double, 4>> results_of_torch() {
  std::ifstream lines{recorded("surrogate.csv")};
  std::vector<std::array<double, 4>> found;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words{line};
    std::string word;
    std::getline(words, word, ',');
    for (double& each : found.emplace_back()) {
      std::getline(words, word, ',');
      each = std::stod(word);
    }
  }
  return found;
}

template <class Strategy>
void check(const Strategy& strategy, int count) {
  const auto train = set("train", 400), held_out = set("held_out", 100);
  const auto history = pdp::testing::ranks<Thread>(count, [&](Thread& world) {
                         const pdp::Task task{pdp::nn::MultilayerPerceptron{{10, 32, 32, 1}, pdp::nn::Tanh{}},
                                              pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 0.01f}};
                         pdp::Trainer trainer{world, strategy, task, {.global_batch = 32}};
                         trainer.set_parameters(pdp::checkpoint::load(recorded("surrogate_init.safetensors")), "surrogate_init");
                         return trainer.fit(train,
                                            {.epochs = 12,
                                             .shuffle = false,
                                             .progress = false,
                                             .validation = &held_out,
                                             .metrics = {pdp::metric::MeanAbsoluteError{}, pdp::metric::RSquared{}}},
                                            [](const pdp::Epoch&) {});
                       }).front();
  const auto expected = results_of_torch();
  REQUIRE(expected.size() == 12);
  REQUIRE(history.size() == 12);
  for (std::size_t e = 0; e < history.size(); ++e) {
    CAPTURE(e);
    CHECK_THAT(history[e].loss, WithinRel(expected[e][0], 1e-4));
    CHECK_THAT(history[e].value("validation loss"), WithinRel(expected[e][1], 1e-4));
    CHECK_THAT(history[e].value("mean absolute error"), WithinRel(expected[e][2], 1e-4));
    CHECK_THAT(history[e].value("R2"), WithinRel(expected[e][3], 1e-4));
  }
}

}  // namespace

TEST_CASE("A surrogate has PyTorch's losses, validation and metrics for 12 epochs under every strategy", "[train][parity]") {
  check(pdp::strategy::Single{}, 1);
  check(pdp::strategy::DataParallel{}, 3);
  check(pdp::strategy::Zero{.stage = 2}, 2);
  check(pdp::strategy::Pipeline<>{.micro_batches = 4}, 3);
}

}  // namespace surrogate_test
