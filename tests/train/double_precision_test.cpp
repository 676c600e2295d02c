#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/normalised.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/metric/metrics.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/loss_gradients.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/averages.hpp>
#include <pdp/train/callbacks.hpp>
#include <pdp/train/column_statistics.hpp>
#include <pdp/train/trainer.hpp>

#include "catch.hpp"
#include "data/files.hpp"

namespace double_precision_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using pdp::Float64, pdp::Index;
using pdp::strategy::AnyStrategy, pdp::strategy::DataParallel, pdp::strategy::Single;
using pdp::testing::same_bits;

namespace {

constexpr nn::Sequential model{nn::Linear{5, 12}, nn::Tanh{}, nn::Linear{12, 3}};
constexpr pdp::Task classifier{model, pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 0.02f}};
constexpr pdp::Task regression{model, pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 0.02f}};

/// The sum of the absolute errors of a sample. Its targets are floats, whatever the type of the outputs.
struct AbsoluteError {
  using Target = float;
  static constexpr bool has_classes = false;
  [[nodiscard]] constexpr Index target_elements(Index outputs) const { return outputs; }
  template <class D, class T>
  void operator()(const D&, pdp::Matrix<const T> output, std::span<const float> targets, const double* scale, pdp::Matrix<T> gradient,
                  pdp::LossSums* sums) const {
    for (Index i = 0; i < output.size(); ++i) {
      const T error = output.data[i] - static_cast<T>(targets[pdp::as_size(i)]);
      sums->loss += static_cast<double>(std::abs(error));
      if (gradient.data != nullptr) gradient.data[i] = std::copysign(static_cast<T>(*scale), error);
    }
  }
};
constexpr pdp::Task absolute{model, AbsoluteError{}, pdp::optim::Adam{.lr = 0.02f}};

static_assert(std::same_as<pdp::loss::TargetOf<pdp::loss::MeanSquaredError, pdp::cpu::Cpu, double>, double>);
static_assert(std::same_as<pdp::loss::TargetOf<pdp::loss::MeanSquaredError, pdp::cpu::Cpu, float>, float>);
static_assert(std::same_as<pdp::loss::TargetOf<pdp::loss::CrossEntropy, pdp::cpu::Cpu, double>, std::int32_t>);
static_assert(std::same_as<pdp::loss::TargetOf<AbsoluteError, pdp::cpu::Cpu, double>, float>);

/// Returns the target of a sample of 5 values: the largest of its first three, or three functions of them.
template <class Target>
std::vector<Target> targets_of(const std::vector<float>& x) {
  std::vector<Target> targets;
  for (auto row = x.begin(); row != x.end(); row += 5) {
    if constexpr (std::integral<Target>)
      targets.push_back(static_cast<Target>(std::max_element(row, row + 3) - row));
    else
      targets.insert(targets.end(), {row[0] * row[1], std::sin(row[2]), row[3] / 2});
  }
  return targets;
}
template <class Target>
pdp::data::InMemory<Target> samples(std::size_t count, int seed = 7) {
  const auto x = pdp::testing::normal(5 * count, seed);
  return {pdp::Shape{5}, x, targets_of<Target>(x), pdp::Shape{std::integral<Target> ? 1 : 3}};
}

struct Fitted {
  double first = 0, last = 0, validation = 0, metric = 0, evaluation = 0;
};
template <class P, class TaskType, class Data>
Fitted fit(comm::Thread& world, const TaskType& task, const Data& data, const Data& held_out, const pdp::metric::Any& metric, P precision) {
  comm::Self alone;
  pdp::Trainer begin{alone, Single{}, regression, {.global_batch = 1, .seed = 3}};
  pdp::Trainer trainer{world, AnyStrategy{DataParallel{}}, task, {.global_batch = 22}, precision};
  trainer.set_parameters(begin.parameters(), "another trainer");  // in float, so that both precisions begin with the same
  const auto epochs = trainer.fit(data, {.epochs = 8, .validation = &held_out, .metrics = {metric}}, [](const pdp::Epoch&) {});
  const pdp::Evaluation& validation = *epochs.back().validation;
  return {epochs.front().loss, epochs.back().loss, validation.mean_loss(), validation.metrics.front().value(),
          trainer.evaluate(held_out).mean_loss()};
}
/// Checks that a task learns in double on 2 ranks, and nearly as in float.
template <class TaskType, class MakeData>
void check_fit(const TaskType& task, const MakeData& data, const pdp::metric::Any& metric) {
  const auto found = pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
    const auto set = data(world, 170, 7), held_out = data(world, 41, 8);
    return std::pair{fit(world, task, set, held_out, metric, Float64{}), fit(world, task, set, held_out, metric, pdp::Float32{})};
  });
  for (const auto& [doubles, floats] : found) {
    CHECK(doubles.last < 0.8 * doubles.first);
    CHECK(doubles.first == Approx(floats.first).epsilon(1e-4));
    CHECK(doubles.first != floats.first);
    CHECK(doubles.validation == Approx(floats.validation).epsilon(1e-3));
    CHECK(doubles.metric == Approx(floats.metric).epsilon(0.05));
    CHECK(doubles.evaluation == doubles.validation);
  }
}

}  // namespace

TEST_CASE("Trainer in double fits with every loss and kind of dataset on 2 ranks", "[train][double]") {
  check_fit(
      classifier, [](comm::Thread&, std::size_t count, int seed) { return samples<std::int32_t>(count, seed); }, pdp::metric::Accuracy{});
  check_fit(
      regression, [](comm::Thread&, std::size_t count, int seed) { return samples<float>(count, seed); }, pdp::metric::MeanAbsoluteError{});
  check_fit(
      absolute, [](comm::Thread&, std::size_t count, int seed) { return samples<float>(count, seed); }, pdp::metric::MeanAbsoluteError{});
}

TEST_CASE("Trainer in double fits with normalised data and with parts of the ranks", "[train][double]") {
  check_fit(
      regression,
      [](comm::Thread& world, std::size_t count, int seed) {
        const auto raw = samples<float>(count, seed);
        return pdp::data::normalised(raw, pdp::column_statistics(world, raw));
      },
      pdp::metric::RootMeanSquaredError{});
  check_fit(
      regression,
      [](comm::Thread& world, std::size_t count, int seed) {
        return pdp::data::PerRank{samples<float>(count / 2 + 3 * pdp::as_size(world.rank()), seed + 10 * world.rank())};
      },
      pdp::metric::MeanAbsoluteError{});
}

TEST_CASE("Every strategy in double gives the losses of Single within 1e-12", "[train][double][equivalence]") {
  const auto follows = [](const auto& task, const auto& data, const AnyStrategy& strategy, int ranks) {
    const auto report = pdp::testing::serial_equivalence<comm::Thread>(task, data, strategy, ranks,
                                                                       {.steps = 20, .global_batch = 22, .tolerance = 1e-12}, Float64{});
    INFO(report.text());
    CHECK(report);
    CHECK(report.control() != report.single());
  };
  const auto classes = samples<std::int32_t>(170);
  const auto numbers = samples<float>(170);
  for (const AnyStrategy& strategy :
       {AnyStrategy{DataParallel{}}, AnyStrategy{pdp::strategy::Zero{.stage = 3}},
        AnyStrategy{pdp::strategy::Pipeline<>{.micro_batches = 3}}, AnyStrategy{pdp::strategy::TensorParallel{}}}) {
    follows(classifier, classes, strategy, 2);
    follows(regression, numbers, strategy, 2);
  }
}

TEST_CASE("A step of a trainer in double subtracts the gradient that central differences give", "[train][double][gradient]") {
  const auto check = [](const auto& loss, const auto& data) {
    const pdp::Task task{model, loss, pdp::optim::Sgd{.lr = 1}};
    comm::Self world;
    pdp::Trainer trainer{world, Single{}, task, {.global_batch = 9, .seed = 2}, Float64{}};
    const auto each_parameter = [&](const auto& visit) {
      for (const auto& part : trainer.engine().state().updated())
        for (double& value : part.values) visit(value);
    };
    std::vector<double> before, expected, found;
    each_parameter([&](double& value) {
      constexpr double h = 1e-5;
      const double kept = std::exchange(value, value + h);
      const double above = trainer.evaluate(data).mean_loss();
      value = kept - h;
      const double below = trainer.evaluate(data).mean_loss();
      value = kept;
      before.push_back(kept);
      expected.push_back((above - below) / (2 * h));
    });
    std::vector<float> x(9 * 5);
    std::vector<typename std::remove_cvref_t<decltype(data)>::Target> y(pdp::as_size(9 * data.target_shape().elements()));
    data.gather(std::vector<Index>{0, 1, 2, 3, 4, 5, 6, 7, 8}, x, y);
    trainer.step(x, y);
    each_parameter([&](double& value) { found.push_back(before[found.size()] - value); });
    CHECK(found.size() == 5 * 12 + 12 + 12 * 3 + 3);
    CHECK(pdp::testing::relative_difference(found, expected) < 1e-8);
  };
  check(pdp::loss::CrossEntropy{}, samples<std::int32_t>(9));
  check(pdp::loss::MeanSquaredError{}, samples<float>(9));
}

TEST_CASE("A training in double keeps its best epoch, averages its parameters, and resumes with the same bits", "[train][double]") {
  const auto x = pdp::testing::normal(11 * 5, 1);
  const auto data = samples<float>(90), held_out = samples<float>(31, 8);
  const files::TemporaryFolder folder;
  const auto same = pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
    const pdp::Task task{model, pdp::loss::MeanSquaredError{}, pdp::optim::Averaged{pdp::optim::Adam{.lr = 0.02f}, 0.9f}};
    pdp::Trainer trainer{world, pdp::strategy::Zero{}, task, {.global_batch = 22, .seed = 3}, Float64{}};
    pdp::KeepBest best;
    trainer.fit(data, {.epochs = 3, .validation = &held_out, .callbacks = {std::ref(best)}}, [](const pdp::Epoch&) {});
    trainer.save(folder.path());
    pdp::Trainer resumed{world, DataParallel{}, task, {.global_batch = 22, .seed = 4}, Float64{}};
    resumed.load(folder.path());
    const auto averages = pdp::with_averages(trainer, [&] { return trainer.predict(x); });
    return same_bits(trainer.predict(x), resumed.predict(x)) && !same_bits(averages, trainer.predict(x)) &&
           trainer.evaluate(held_out).mean_loss() == Approx(best.value).epsilon(1e-12);
  });
  CHECK(same == std::vector<bool>{true, true});
}

TEST_CASE("check_loss_gradients checks MeanSquaredError in double", "[train][double]") {
  const auto result = pdp::testing::check_loss_gradients<double>(pdp::loss::MeanSquaredError{}, 5);
  INFO(result.text());
  CHECK(result);
}

TEST_CASE("Steps and predictions of a trainer in double are bitwise equal for floats and doubles of the same values", "[train][double]") {
  const auto x = pdp::testing::normal(11 * 5, 1);
  const auto y = targets_of<float>(x);
  const std::vector<double> wide_x(x.begin(), x.end()), wide_y(y.begin(), y.end());
  const auto learn = [&](const auto& samples, const auto& targets) {
    return pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
      pdp::Trainer trainer{world, DataParallel{}, regression, {.global_batch = 22, .seed = 3}, Float64{}};
      std::vector<double> found;
      for (int step = 0; step < 3; ++step) found.push_back(trainer.step(samples, targets).mean_loss());
      trainer.start({samples.data(), 5 * 3}, {targets.data(), 3 * 3});
      found.push_back(trainer.finish().loss);
      const std::vector<double> outputs = trainer.predict(samples);
      found.insert(found.end(), outputs.begin(), outputs.end());
      return found;
    });
  };
  const auto expected = learn(wide_x, wide_y);
  CHECK(same_bits(learn(x, y)[1], expected[1]));
  CHECK(same_bits(learn(x, wide_y)[0], expected[0]));
  CHECK(same_bits(learn(wide_x, y)[0], expected[0]));
}

TEST_CASE("A trainer in double uses all bits of doubles, in samples and in targets", "[train][double]") {
  comm::Self world;
  std::vector<double> x(5, 0.25), y(3, 0.5);
  const auto loss = [&] {
    pdp::Trainer trainer{world, Single{}, regression, {.global_batch = 1, .seed = 3}, Float64{}};
    return trainer.step(x, y).loss;
  };
  const double before = loss();
  x[1] += 1e-12;
  const double moved = loss();
  CHECK(moved != before);
  y[2] += 1e-12;
  CHECK(loss() != moved);
  CHECK(loss() == Approx(before).epsilon(1e-9));
}

TEST_CASE("A trainer in float rounds doubles, and a rank may have no rows of either", "[train][double]") {
  const auto x = pdp::testing::normal<double>(11 * 5, 1);
  const std::vector<float> rounded(x.begin(), x.end());
  const auto y = targets_of<float>(rounded);
  const std::vector<double> wide_y(y.begin(), y.end());
  const auto learn = [&](const auto& samples, const auto& targets) {
    return pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
      pdp::Trainer trainer{world, DataParallel{}, regression, {.global_batch = 22, .seed = 3}};
      for (int step = 0; step < 3; ++step)
        if (world.rank() == 0)
          trainer.step(samples, targets);
        else
          trainer.step({}, {});
      return trainer.predict(samples);
    });
  };
  CHECK(same_bits(learn(x, wide_y)[0], learn(rounded, y)[0]));
}

TEST_CASE("A trainer in double refuses batches of floats that do not fit, as it refuses doubles", "[train][double]") {
  comm::Self world;
  pdp::Trainer trainer{world, Single{}, regression, {.global_batch = 4, .seed = 3}, Float64{}};
  const std::vector<float> x(5 * 5), y(5 * 3);
  CHECK_THROWS_AS(trainer.step(std::span{x}.first(11), std::span{y}.first(6)), pdp::ShapeError);
  CHECK_THROWS_AS(trainer.step(std::span{x}.first(10), std::span{y}.first(5)), pdp::ShapeError);
  CHECK_THROWS_AS(trainer.step(x, y), pdp::ShapeError);
  CHECK_THROWS_AS(trainer.predict(std::span{x}.first(11)), pdp::ShapeError);
  CHECK(trainer.step(std::span{x}.first(20), std::span{y}.first(12)).rows == 4);
}

}  // namespace double_precision_test
