#include <pdp/comm/self.hpp>
#include <pdp/loss/weighted_cross_entropy.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/train/task.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace training_test {
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;

using pdp::Trainer;

namespace {

struct Course {
  std::vector<double> losses, correct, norms;
  std::vector<float> parameters;
};

/// Trains for some epochs. Each ends with a short batch.
template <class S, class TaskType, class... How>
Course train(const S& strategy, const TaskType& task, const pdp::TrainerOptions& options, int epochs, const How&... how) {
  pdp::comm::Self self;
  Trainer trainer{self, strategy, task, options, how...};
  Course course;
  trainer.fit(
      tasks::samples(100), {.epochs = epochs}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) {
        course.losses.push_back(totals.mean_loss());
        course.correct.push_back(totals.correct);
        course.norms.push_back(totals.gradient_norm);
      });
  for (const auto& tensor : trainer.parameters())
    course.parameters.insert(course.parameters.end(), tensor.values.begin(), tensor.values.end());
  return course;
}

/// Returns the largest relative difference, or NaN if there is one.
double largest_difference(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double each = std::abs(found[i] - expected[i]) / std::abs(expected[i]);
    if (std::isnan(each)) return each;
    largest = std::max(largest, each);
  }
  return largest;
}

}  // namespace

TEST_CASE("Training on a GPU matches training on a CPU for every strategy on one rank", "[cuda][equivalence]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto task = tasks::residual_classifier(2);
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3, .clip_norm = GENERATE(0.0, 0.5)};
  const auto check = [&](const strategy::AnyStrategy& strategy) {
    const Course expected = train(strategy, task, options, 3), found = train(strategy, task, options, 3, *device);
    CHECK(largest_difference(found.losses, expected.losses) < 1e-5);
    CHECK(found.correct == expected.correct);
    CHECK(found.losses.back() < found.losses.front());
    if (options.clip_norm > 0) CHECK(largest_difference(found.norms, expected.norms) < 1e-4);
  };
  check(strategy::Single{});
  check(strategy::DataParallel{.accumulate = 3});
  check(strategy::Zero{.stage = 2, .accumulate = 2});
  check(strategy::Zero{.stage = 3});
  check(strategy::Pipeline<plan::ZeroBubble>{.micro_batches = 3});
  check(strategy::TensorParallel{});
}

TEST_CASE("Initial values on a GPU equal those on a CPU bit for bit", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  using namespace pdp::nn;
  const Initializer initializer = GENERATE(as<Initializer>{}, kaiming_uniform, kaiming_normal, truncated_normal(0.5), orthogonal(), ones);
  const pdp::Task task{Sequential{Linear{.in = 8, .out = 24, .initializer = initializer}, Linear{24, 4}}, pdp::loss::CrossEntropy{},
                       pdp::optim::Sgd{.lr = 0.1f}};
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  CHECK(pdp::testing::same_bits(train(strategy::Single{}, task, options, 0, *device).parameters,
                                train(strategy::Single{}, task, options, 0).parameters));
}

TEST_CASE("Losses on a GPU stay within 1e-4 of those on a CPU over 52 steps", "[cuda][equivalence]") {
  const auto device = gpu::device();
  if (!device) return;
  constexpr pdp::nn::Sequential model{pdp::nn::Linear{8, 32}, pdp::nn::Tanh{}, pdp::nn::Linear{32, 16}, pdp::nn::Tanh{},
                                      pdp::nn::Linear{16, 4}};
  const pdp::Task adam{model, pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-2f}, pdp::optim::Cosine{.steps = 60}};
  const pdp::Task sgd{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};
  const pdp::TrainerOptions options{.global_batch = 8, .seed = 5};
  CHECK(largest_difference(train(strategy::Single{}, adam, options, 4, *device).losses,
                           train(strategy::Single{}, adam, options, 4).losses) < 1e-4);
  CHECK(largest_difference(train(strategy::Single{}, sgd, options, 4, *device).losses, train(strategy::Single{}, sgd, options, 4).losses) <
        1e-4);
}

TEST_CASE("Training with class weights on a GPU has the losses of a CPU", "[cuda][loss]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto task = [](auto loss) { return pdp::Task{tasks::residual_classifier(1).model, loss, pdp::optim::Sgd{.lr = 0.1f}}; };
  const pdp::loss::WeightedCrossEntropy<4> weighted{.weights = {0.1f, 10, 2, 0}, .label_smoothing = 0.1};
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  const Course expected = train(strategy::Single{.accumulate = 3}, task(weighted), options, 3);
  const Course found = train(strategy::Single{.accumulate = 3}, task(weighted), options, 3, *device);
  CHECK(largest_difference(found.losses, expected.losses) < 1e-4);
  CHECK(found.correct == expected.correct);
}

TEST_CASE("Training on a GPU repeats to the bit with and without graphs", "[cuda]") {
  const auto recorded = gpu::device(), again = gpu::device(), plain = gpu::device({.graphs = false});
  if (!recorded) return;
  const auto task = tasks::residual_classifier(2);
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  const Course first = train(strategy::Single{}, task, options, 2, *recorded);
  for (const auto& other : {again, plain}) {
    const Course course = train(strategy::Single{}, task, options, 2, *other);
    CHECK(course.losses == first.losses);
    CHECK(pdp::testing::same_bits(course.parameters, first.parameters));
  }
}

TEST_CASE("Trainer on a GPU returns set parameters unchanged, and predicts and evaluates as on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto task = tasks::residual_classifier(2);
  const auto data = tasks::samples(50);
  pdp::comm::Self self, other;
  Trainer on_cpu{self, strategy::Single{}, task, {.global_batch = 16, .seed = 9}};
  Trainer on_gpu{other, strategy::Single{}, task, {.global_batch = 16, .seed = 8}, *device};
  on_gpu.set_parameters(on_cpu.parameters(), "memory");
  const auto here = on_cpu.parameters(), there = on_gpu.parameters();
  REQUIRE(here.size() == there.size());
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(pdp::testing::same_bits(here[i].values, there[i].values));
  const auto inputs = support::normal(37 * data.sample_shape().elements(), 4);
  CHECK(support::difference(on_gpu.predict(inputs), on_cpu.predict(inputs)) < 1e-5);
  const auto expected = on_cpu.evaluate(data), found = on_gpu.evaluate(data);
  CHECK(found.rows == 50);
  CHECK(found.correct == expected.correct);
  CHECK(found.loss == Approx(expected.loss).epsilon(1e-6));
  on_gpu.check_parameters();
}

TEST_CASE("NonFinite::skip on a GPU skips a step with a NaN gradient, and NonFinite::stop throws", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto task = tasks::residual_classifier(2);
  const auto steps = [&](plan::NonFinite policy) {
    pdp::comm::Self self;
    Trainer trainer{self, strategy::Single{}, task, {.global_batch = 8, .seed = 3, .non_finite = policy}, *device};
    std::vector<std::int32_t> classes(8);
    auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
    for (int step = 0; step < 4; ++step) {
      const float was = std::exchange(x[3], step == 2 ? NAN : x[3]);
      const auto before = trainer.parameters();
      const auto totals = trainer.step(x, classes);
      CHECK(totals.skipped == (step == 2));
      const auto after = trainer.parameters();
      CHECK(pdp::testing::same_bits(before[0].values, after[0].values) == (step == 2));
      x[3] = was;
    }
  };
  steps(plan::NonFinite::skip);
  CHECK_THAT(support::message_of<pdp::NonFiniteGradient>([&] { steps(plan::NonFinite::stop); }).value(),
             Contains("step 2: the gradient of ") && Contains(" on rank 0 is not finite"));
}

TEST_CASE("Trainer::step on a GPU rejects a class out of range on the host and stays usable", "[cuda][bad input]") {
  const auto device = gpu::device();
  if (!device) return;
  pdp::comm::Self self;
  Trainer trainer{self, strategy::Single{}, tasks::residual_classifier(2), {.global_batch = 8, .seed = 3}, *device};
  const auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
  std::vector<std::int32_t> classes(8);
  classes[5] = 77;
  CHECK_THAT(support::message_of<pdp::ConfigError>([&] { trainer.step(x, classes); }).value(), Contains("row 5 of a batch is of class 77"));
  classes[5] = 0;
  CHECK(std::isfinite(trainer.step(x, classes).loss));
}

TEST_CASE("Engine::start trains equally on batches in GPU memory and in host memory", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto task = tasks::residual_classifier(2);
  const auto width = static_cast<pdp::Index>(tasks::samples(1).sample_shape().elements());
  constexpr pdp::Index rows = 8;
  std::vector<std::vector<float>> x;
  std::vector<gpu::Copy<float>> x_there;
  for (int number = 0; number < 3; ++number) x.push_back(support::normal(rows * width, number));
  for (const auto& each : x) x_there.emplace_back(*device, each);
  const std::vector<std::int32_t> classes{0, 1, 2, 0, 1, 2, 0, 1};
  const gpu::Copy<std::int32_t> classes_there{*device, classes};

  const auto parameters_after = [&](auto&& step) {
    pdp::comm::Self self;
    Trainer trainer{self, strategy::Single{}, task, {.global_batch = rows, .seed = 3}, *device};
    for (std::size_t number = 0; number < 7; ++number) step(trainer, number % 3);
    const double loss = trainer.finish().loss;  // of the last step
    return std::pair{loss, trainer.parameters().front().values};
  };
  const auto expected = parameters_after([&](auto& trainer, std::size_t which) { trainer.start(x[which], classes, rows); });
  const auto found = parameters_after([&](auto& trainer, std::size_t which) {
    trainer.engine().start({std::as_const(x_there[which]).matrix(rows, width), classes_there.read(), rows, /*on_device*/ true});
  });
  CHECK(found.first == expected.first);
  CHECK(pdp::testing::same_bits(found.second, expected.second));
}

}  // namespace training_test
