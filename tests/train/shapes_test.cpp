#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "train/ways.hpp"

/// Training with samples of several dimensions.
namespace shapes_test {

namespace nn = pdp::nn;
using pdp::Shape, pdp::comm::Thread, ways_test::Way;

namespace {

constexpr nn::Sequential model{nn::Linear{4, 24},
                               nn::Tanh{},
                               nn::Dropout{0.25f},
                               nn::Linear{24, 6},
                               nn::Residual{nn::Sequential{nn::Linear{6, 10}, nn::Silu{}, nn::Dropout{0.25f}, nn::Linear{10, 6}}},
                               nn::Flatten{},
                               nn::Linear{30, 4}};
const pdp::Task task{model, pdp::loss::MeanSquaredError{}, pdp::optim::AdamW{.lr = 0.02f}};
constexpr pdp::TrainerOptions options{.global_batch = 12, .seed = 5, .input = Shape{5, 4}};

std::vector<double> losses(const Way& way) {
  constexpr std::size_t count = 31;
  const pdp::data::InMemory<float> samples{Shape{5, 4}, pdp::testing::normal(count * 20, 3), pdp::testing::normal(count * 4, 4), Shape{4}};
  return pdp::testing::ranks<Thread>(way.ranks,
                                     [&](Thread& world) {
                                       pdp::Trainer trainer{world, way.strategy, task, options};
                                       std::vector<double> made;
                                       trainer.fit(
                                           samples, {.epochs = 3}, [](const pdp::Epoch&) {},
                                           [&](std::int64_t, const auto& totals) { made.push_back(totals.mean_loss()); });
                                       return made;
                                     })
      .front();
}

}  // namespace

TEST_CASE("Layers on the last dimension, and their random numbers, are those of serial training under every strategy", "[train][shapes]") {
  const std::vector<double> expected = losses({"single", 1, pdp::strategy::Single{}});
  CHECK(expected.back() < 0.9 * expected.front());
  for (const Way& way : ways_test::ways()) {
    CAPTURE(way.name, way.ranks);
    const std::vector<double> found = losses(way);
    REQUIRE(found.size() == expected.size());
    for (std::size_t step = 0; step < found.size(); ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-4));
  }
}

TEST_CASE("A Trainer that takes vectors says how to give it samples of several dimensions", "[train][shapes]") {
  const pdp::data::InMemory<float> samples{Shape{5, 4}, std::vector<float>(40), std::vector<float>(12), Shape{6}};
  pdp::testing::ranks<Thread>(1, [&](Thread& world) {
    pdp::Trainer trainer{world,
                         pdp::strategy::AnyStrategy{pdp::strategy::Single{}},
                         pdp::Task{nn::Sequential{nn::Linear{4, 6}}, pdp::loss::MeanSquaredError{}, pdp::optim::AdamW{}},
                         {.global_batch = 2}};
    CHECK_THROWS_WITH(trainer.fit(samples, {.epochs = 1}),
                      Contains("samples of shape [5, 4], but the model takes 4 values a sample") && Contains("{.input = Shape{8, 64}}"));
    return 0;
  });
}

}  // namespace shapes_test
