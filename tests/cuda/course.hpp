// Trains a model on ranks with GPUs, and compares losses and parameters with those of training on a CPU.
#pragma once

#include <pdp/comm/self.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace courses {

struct Course {
  std::vector<double> losses, correct;
  std::vector<float> outputs, parameters;
};

template <class C, class S, class TaskType, class... How>
Course train(C& world, const S& strategy, const TaskType& task, const pdp::TrainerOptions& options, const How&... how) {
  pdp::Trainer trainer{world, strategy, task, options, how...};
  const auto data = tasks::samples(100);
  Course course;
  trainer.fit(
      data, {.epochs = 3}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) {
        course.losses.push_back(totals.mean_loss());
        course.correct.push_back(totals.correct);
      });
  trainer.check_parameters();
  course.losses.push_back(trainer.evaluate(data).mean_loss());
  course.outputs = trainer.predict(support::normal(11 * data.sample_shape().elements(), 2));
  for (const auto& tensor : trainer.parameters())
    course.parameters.insert(course.parameters.end(), tensor.values.begin(), tensor.values.end());
  return course;
}

/// Returns the parameters at the start of training.
template <class TaskType>
std::vector<float> start_of(const TaskType& task, const pdp::TrainerOptions& options) {
  pdp::comm::Self self;
  std::vector<float> parameters;
  for (const auto& tensor : pdp::Trainer{self, pdp::strategy::Single{}, task, options}.parameters())
    parameters.insert(parameters.end(), tensor.values.begin(), tensor.values.end());
  return parameters;
}

/// Checks that ranks with communicators of type C and a GPU each learn what one process on a CPU learns. AnyStrategy avoids compiling an
/// engine for each strategy.
template <class C, class... How>
void check(const pdp::strategy::AnyStrategy& strategy, int ranks, const pdp::TrainerOptions& options, double tolerance = 1e-5,
           const How&... how) {
  const auto task = tasks::residual_classifier(3);
  pdp::comm::Self self;
  const Course expected = train(self, pdp::strategy::Single{}, task, options);
  const auto found = pdp::testing::ranks<C>(
      ranks, [&](C& world) { return train(world, strategy, task, options, pdp::cuda::Device{{.index = world.device()}}, how...); });
  INFO(ranks << " ranks");
  const double later = std::min(100 * tolerance, 0.2);  // for outputs and parameters after all steps
  for (const Course& course : found) {
    CHECK(support::difference(course.losses, expected.losses) < tolerance);
    CHECK(support::difference(course.outputs, expected.outputs) < later);
  }
  CHECK(support::difference(found.front().parameters, expected.parameters) < later);
}

/// Checks that two ranks with communicators of type C add up the rows of a step, and that both name the rank whose gradient is not finite.
template <class C>
void check_rows_and_culprit() {
  const auto width = static_cast<pdp::Index>(tasks::samples(1).sample_shape().elements());
  const auto messages = pdp::testing::ranks<C>(2, [&](C& world) {
    pdp::Trainer trainer{world,
                         pdp::strategy::DataParallel{},
                         tasks::residual_classifier(2),
                         {.global_batch = 16, .seed = 3, .non_finite = pdp::plan::NonFinite::stop},
                         pdp::cuda::Device{{.index = world.device()}}};
    const pdp::Index rows = world.rank() == 0 ? 8 : 3;
    auto x = support::normal(rows * width, world.rank());
    const std::vector<std::int32_t> classes(static_cast<std::size_t>(rows));
    if (trainer.step(x, classes).rows != 11) throw std::logic_error{"rows were lost"};
    if (world.rank() == 1) x[0] = NAN;
    return support::message_of<pdp::NonFiniteGradient>([&] { trainer.step(x, classes); }).value_or("nothing was thrown");
  });
  for (const std::string& message : messages)
    CHECK_THAT(message, Contains("step 1: the gradient of ") && Contains(" on rank 1 is not finite"));
}

}  // namespace courses
