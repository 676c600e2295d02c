#include <pdp/comm/self.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/train/trainer.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"
#include "engine/apart.hpp"
#include "erased.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using pdp::Trainer;

namespace {

/// All results of a trainer that a program can see.
struct Seen {
  std::vector<double> numbers;
  std::vector<float> values;
  friend bool operator==(const Seen&, const Seen&) = default;
};

template <class S, class TaskType, class Data, class... Device>
Seen train(const S& strategy, const TaskType& task, const Data& data, const pdp::TrainerOptions& options, const Device&... device) {
  comm::Self self;
  Trainer trainer{self, strategy, task, options, device...};
  Seen seen;
  trainer.fit(
      data, {.epochs = 2}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) {
        seen.numbers.insert(seen.numbers.end(), {totals.loss, totals.correct, totals.rows, totals.gradient_norm});
      });
  const std::vector<float> inputs = support::normal(13 * data.sample_shape().elements(), 7);
  const auto first = trainer.parameters();
  auto doubled = first;
  for (auto& tensor : doubled)
    for (float& value : tensor.values) value *= 2;
  for (const auto& parameters : {first, doubled}) {
    trainer.set_parameters(parameters, "memory");
    trainer.check_parameters();
    for (const auto& tensor : trainer.parameters()) seen.values.insert(seen.values.end(), tensor.values.begin(), tensor.values.end());
    for (const float output : trainer.predict(inputs)) seen.values.push_back(output);
    const auto totals = trainer.evaluate(data);
    seen.numbers.insert(seen.numbers.end(), {totals.loss, totals.correct, totals.rows});
  }
  return seen;
}

/// `strategy`: an erased one.
template <class S>
void check_erased(const S& strategy, const pdp::TrainerOptions& options) {
  const auto data = tasks::samples(100);
  const auto task = tasks::residual_classifier(2);
  const Seen expected = train(strategy, task, data, options);
  CHECK(train(strategy, task, data, options, apart::Device{}) == expected);
  CHECK(std::isfinite(expected.numbers.front()));
}
template <class S>
void check_apart(const S& strategy, const pdp::TrainerOptions& options) {
  check_erased(erased::strategy(strategy), options);
}

}  // namespace

TEST_CASE("Trainer gives equal results on a device whose memory the host cannot access", "[parallel][device]") {
  const double clip = GENERATE(0.0, 0.5);
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3, .clip_norm = clip, .non_finite = plan::NonFinite::stop};
  check_apart(strategy::Single{}, options);
  check_apart(strategy::DataParallel{.accumulate = 3}, options);
  check_apart(strategy::Zero{.stage = 1}, options);
  check_apart(strategy::Zero{.stage = 2, .accumulate = 2}, options);
  check_apart(strategy::Zero{.stage = 3, .accumulate = 2}, options);
  check_apart(strategy::Pipeline<>{.micro_batches = 3}, options);
  check_apart(strategy::Pipeline<plan::ZeroBubble>{.micro_batches = 3, .join_weights = 2}, options);
  check_apart(strategy::TensorParallel{}, options);
}

TEST_CASE("NonFinite::skip and stop find a NaN gradient in memory that the host cannot access", "[parallel][device]") {
  const auto skips = plan::NonFinite::skip, stops = plan::NonFinite::stop;
  const auto task = tasks::residual_classifier(2);
  const strategy::DataParallel data_parallel{.accumulate = 2};
  const auto steps = [&](plan::NonFinite policy, const auto&... device) {
    comm::Self self;
    Trainer trainer{self, strategy::StrategyRef{data_parallel}, task, {.global_batch = 8, .seed = 3, .non_finite = policy}, device...};
    const auto samples = tasks::samples(8);
    std::vector<pdp::Index> all{0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<float> x(static_cast<std::size_t>(8 * samples.sample_shape().elements()));
    std::vector<std::int32_t> classes(8);
    samples.gather(all, x, classes);
    std::vector<double> seen;
    for (int step = 0; step < 5; ++step) {
      const float was = std::exchange(x[3], step == 2 ? NAN : x[3]);
      const auto totals = trainer.step(x, classes);
      x[3] = was;
      if (!totals.skipped) seen.push_back(totals.loss);
      CHECK(totals.skipped == (step == 2));
    }
    return seen;
  };
  const auto expected = steps(skips);
  CHECK(expected.size() == 4);
  CHECK(steps(skips, apart::Device{}) == expected);
  CHECK_THAT(support::message_of<pdp::NonFiniteGradient>([&] { steps(stops, apart::Device{}); }).value(),
             Contains("step 2: the gradient of ") && Contains(" on rank 0 is not finite"));
  CHECK_THAT(support::message_of<pdp::NonFiniteLoss>([&] { steps(plan::NonFinite::stop_on_loss, apart::Device{}); }).value(),
             StartsWith("step 2: the loss is NaN; on rank 0, 1 of the 64 values of the input is not finite (NaN or infinity), the first in "
                        "row 0 of that rank; "));
}

TEST_CASE("A fit stops at a NaN in a sample and names it, also on a device that runs a step ahead", "[parallel][device]") {
  std::vector<float> x = support::normal(64 * 8, 7);
  const std::vector<std::int32_t> classes = tasks::classes_of(x);
  const int step = GENERATE(0, 5, 7);
  x[static_cast<std::size_t>(step * 8 + 6) * 8 + 2] = NAN;
  const pdp::data::InMemory<std::int32_t> data{pdp::Shape{8}, x, classes};
  const auto task = tasks::residual_classifier(2);
  const strategy::DataParallel data_parallel{.accumulate = 2};
  const auto fit = [&](const auto&... on_step) {
    comm::Self self;
    Trainer trainer{self, strategy::StrategyRef{data_parallel}, task, {.global_batch = 8, .seed = 3}, apart::Device{}};
    trainer.fit(
        data, {.shuffle = false}, [](const pdp::Epoch&) {}, on_step...);
  };
  const std::string expected = pdp::text("step ", step,
                                         ": the loss is NaN; on rank 0, 1 of the 64 values of the input is not finite (NaN or infinity), "
                                         "the first in row 6 of that rank; look at the samples of that step");
  CHECK_THAT(support::message_of<pdp::NonFiniteLoss>([&] { fit(); }).value(), StartsWith(expected));
  CHECK_THAT(support::message_of<pdp::NonFiniteLoss>([&] { fit([](std::int64_t, const auto&) {}); }).value(), StartsWith(expected));
}

TEST_CASE("Bfloat16Gradients gives equal losses on a device whose memory the host cannot access", "[parallel][device]") {
  const auto data = tasks::samples(100);
  const auto task = tasks::residual_classifier(2);
  const strategy::Zero zero{.stage = 2, .accumulate = 2};
  const auto losses = [&](const auto&... how) {
    comm::Self self;
    Trainer trainer{self, strategy::StrategyRef{zero}, task, {.global_batch = 32, .seed = 3}, how...};
    std::vector<double> found;
    trainer.fit(
        data, {.epochs = 2}, [](const pdp::Epoch&) {}, [&](std::int64_t, const auto& totals) { found.push_back(totals.loss); });
    return found;
  };
  const auto rounded = losses(pdp::Bfloat16Gradients{});
  CHECK(losses(apart::Device{}, pdp::Bfloat16Gradients{}) == rounded);
  CHECK(losses(apart::Device{}) != rounded);
}
