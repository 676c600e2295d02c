#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/label.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/metric/classification.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "train/ways.hpp"

/// A loss with one target for each position of a sample.
namespace positions_test {

namespace nn = pdp::nn;
using pdp::Index, pdp::Shape, pdp::comm::Thread, ways_test::Way;

namespace {

constexpr std::size_t positions = 5, inputs = 4, classes = 6, samples = 31;

auto task(std::optional<std::int32_t> ignored = {}) {
  return pdp::Task{nn::Sequential{nn::Linear{inputs, 12}, nn::Tanh{}, nn::Linear{12, 8}, nn::Tanh{}, nn::Linear{8, classes}},
                   pdp::loss::CrossEntropy{.ignore_index = ignored}, pdp::optim::AdamW{.lr = 0.02f}};
}
using TaskType = std::remove_const_t<decltype(task())>;
using Trainer = pdp::Trainer<Thread, pdp::strategy::AnyStrategy, TaskType>;
const Way single{"single", 1, pdp::strategy::Single{}};

std::vector<float> x() { return pdp::testing::normal(samples * positions * inputs, 3); }
/// Returns classes; some are -1 if `ignores`, among them all positions of sample 7.
std::vector<std::int32_t> y(bool ignores) {
  std::vector<std::int32_t> made(samples * positions);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::int32_t>(i * 7 % classes);
  if (ignores)
    for (std::size_t i = 0; i < made.size(); ++i)
      if (i % 3 == 0 || i / positions == 7) made[i] = -1;
  return made;
}

struct Run {
  std::vector<double> losses, rows;
  double accuracy = 0, metric = 0;
};

Run fitted(const Way& way, bool ignores) {
  return pdp::testing::ranks<Thread>(
             way.ranks,
             [&](Thread& world) {
               const pdp::data::InMemory<std::int32_t> set{Shape{positions, inputs}, x(), y(ignores), Shape{positions}};
               Trainer trainer{
                   world, way.strategy, ignores ? task(-1) : task(), {.global_batch = 12, .seed = 5, .input = Shape{positions, inputs}}};
               Run made;
               trainer.fit(
                   set, {.epochs = 3}, [](const pdp::Epoch&) {},
                   [&](std::int64_t, const auto& totals) {
                     made.losses.push_back(totals.mean_loss());
                     made.rows.push_back(totals.rows);
                   });
               const std::vector<pdp::metric::Any> metrics{pdp::metric::Accuracy{}};
               const auto found = trainer.evaluate(set, metrics);
               made.accuracy = found.accuracy();
               made.metric = found.metrics.front().value();
               return made;
             })
      .front();
}

}  // namespace

TEST_CASE("CrossEntropy takes a class for each position, under every strategy", "[train][positions]") {
  for (const bool ignores : {false, true}) {
    const Run expected = fitted(single, ignores);
    CHECK(expected.losses[6] + expected.losses[7] < expected.losses[0] + expected.losses[1]);
    if (!ignores) CHECK(expected.rows == std::vector<double>{60, 60, 35, 60, 60, 35, 60, 60, 35});
    CHECK(expected.metric == Approx(expected.accuracy));
    for (const Way& way : ways_test::ways()) {
      CAPTURE(way.name, way.ranks, ignores);
      const Run found = fitted(way, ignores);
      REQUIRE(found.losses.size() == expected.losses.size());
      for (std::size_t step = 0; step < found.losses.size(); ++step)
        CHECK(found.losses[step] == Approx(expected.losses[step]).epsilon(1e-4));
      CHECK(found.rows == expected.rows);
      CHECK(found.accuracy == Approx(expected.accuracy).margin(0.02));
      CHECK(found.metric == Approx(found.accuracy));
    }
  }
}

TEST_CASE("Training on positions equals training on as many samples", "[train][positions]") {
  const auto values = x();
  const auto targets = y(true);
  const auto losses = [&](std::size_t of_sample) {
    return pdp::testing::ranks<Thread>(
               1,
               [&](Thread& world) {
                 const Index rows = static_cast<Index>(samples * positions / of_sample);
                 Trainer trainer{world,
                                 pdp::strategy::Single{},
                                 task(-1),
                                 {.global_batch = rows, .seed = 5, .input = of_sample == 1 ? Shape{inputs} : Shape{of_sample, inputs}}};
                 std::vector<double> made;
                 for (int step = 0; step < 4; ++step) made.push_back(trainer.step(values, targets).mean_loss());
                 return made;
               })
        .front();
  };
  const auto alone = losses(1), together = losses(positions);
  for (std::size_t step = 0; step < alone.size(); ++step) CHECK(together[step] == Approx(alone[step]).epsilon(1e-5));
}

TEST_CASE("A wrong class of a position is named with its sample and its position", "[train][positions]") {
  pdp::testing::ranks<Thread>(1, [&](Thread& world) {
    auto wrong = y(false);
    wrong[2 * positions + 3] = classes;
    Trainer trainer{world, pdp::strategy::Single{}, task(), {.global_batch = samples, .seed = 5, .input = Shape{positions, inputs}}};
    CHECK_THROWS_WITH(trainer.step(x(), wrong), Contains("position 3 of row 2 of a batch is of class 6") && Contains("classes 0 to 5"));
    const pdp::data::InMemory<std::int32_t> set{Shape{positions, inputs}, x(), wrong, Shape{positions}};
    CHECK_THROWS_WITH(trainer.evaluate(set), Contains("evaluation: position 3 of sample 2 of the dataset"));
    const pdp::data::InMemory<std::int32_t> one{Shape{positions, inputs}, x(), std::vector<std::int32_t>(samples), Shape{1}};
    CHECK_THROWS_WITH(trainer.evaluate(one), Contains("targets of shape [1], but the loss takes 5 elements for each sample"));
    return 0;
  });
}

}  // namespace positions_test
