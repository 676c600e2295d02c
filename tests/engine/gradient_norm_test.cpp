#include <pdp/comm/any.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <mutex>

#include "catch.hpp"
#include "erased.hpp"
#include "strategy/communicators.hpp"
#include "strategy/tasks.hpp"

namespace gradient_norm_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::engine;
using namespace pdp::strategy;
using pdp::testing::ranks;
using pdp::testing::serial_equivalence;

namespace {

constexpr pdp::Task task{nn::Sequential{nn::Linear{8, 7}, nn::Tanh{}, nn::Linear{7, 5}, nn::Tanh{}, nn::Linear{5, 4}},
                         pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 1}};

struct Spread {
  AnyStrategy strategy;
  int ranks;
};
/// Every way to store a gradient: whole, in slices, or in parts that only one rank has.
std::vector<Spread> every_strategy() {
  return {{Single{}, 1},
          {Single{.accumulate = 3}, 1},
          {DataParallel{.unit_elements = 1}, 2},
          {DataParallel{.accumulate = 2}, 3},
          {Zero{.stage = 1, .unit_elements = 1}, 3},
          {Zero{.stage = 2, .accumulate = 2, .unit_elements = 1}, 3},
          {Zero{.stage = 3, .accumulate = 2, .unit_elements = 1}, 3},
          {Zero{.stage = 3}, 2},
          {Pipeline<OneForwardOneBackward>{.micro_batches = 3}, 2},
          {Pipeline<ZeroBubble>{.micro_batches = 4}, 4}};
}

/// The parameters after several steps, and the totals of each step.
struct Trained {
  std::vector<pdp::checkpoint::Tensor> parameters;
  std::vector<pdp::engine::Totals> totals;
};
template <class TaskType = decltype(task)>
Trained train(const Spread& spread, pdp::TrainerOptions options, const std::vector<std::vector<float>>& batches,
              const TaskType& of = task) {
  options.global_batch = static_cast<pdp::Index>(batches.front().size()) / 8;
  options.seed = 3;
  std::vector<Trained> all = erased::ranks<comm::Thread>(spread.ranks, [&](comm::Any& world) {
    pdp::Trainer trainer{world, spread.strategy, of, options};
    Trained trained;
    for (const std::vector<float>& x : batches) {
      const std::vector<std::int32_t> classes = tasks::classes_of(x);
      const pdp::data::Rows rows = pdp::data::shard_rows(options.global_batch, trainer.share());
      trained.totals.push_back(
          trainer.step(std::span{x}.subspan(static_cast<std::size_t>(rows.first) * 8, static_cast<std::size_t>(rows.size()) * 8),
                       std::span{classes}.subspan(static_cast<std::size_t>(rows.first), static_cast<std::size_t>(rows.size()))));
    }
    trained.parameters = trainer.parameters();
    return trained;
  });
  for (const Trained& each : all)
    for (std::size_t step = 0; step < batches.size(); ++step) {
      const double norm = each.totals[step].gradient_norm, first = all.front().totals[step].gradient_norm;
      CHECK((norm == first || (std::isnan(norm) && std::isnan(first))));
      CHECK(each.totals[step].skipped == all.front().totals[step].skipped);
    }
  return std::move(all.front());
}

double distance(const Trained& a, const Trained& b) {
  double sum = 0;
  for (std::size_t t = 0; t < a.parameters.size(); ++t) {
    const std::vector<float>&x = a.parameters[t].values, &y = b.parameters[t].values;
    for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
  }
  return std::sqrt(sum);
}

/// Returns 13 samples, ten times as large as usual, which makes the gradients large.
std::vector<float> large(std::uint64_t seed) {
  std::vector<float> x = pdp::testing::normal(std::size_t{13} * 8, seed);
  for (float& value : x) value *= 10;
  return x;
}
std::vector<float> with(std::vector<float> x, std::size_t row, float value) {
  x[row * 8 + 5] = value;
  return x;
}
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("clip_norm clips by the norm of the whole gradient, for every strategy", "[parallel][gradient]") {
  const std::vector<std::vector<float>> once{large(7)};
  const Trained reference = train({Single{}, 1}, {.clip_norm = 1e6}, once);
  const double norm = reference.totals[0].gradient_norm;
  REQUIRE(norm > 0.1);
  const Trained clipped = train({Single{}, 1}, {.clip_norm = norm / 3}, once);
  for (const Spread& spread : every_strategy()) {
    const Trained whole = train(spread, {.clip_norm = 1e6}, once), third = train(spread, {.clip_norm = norm / 3}, once);
    CHECK(whole.totals[0].gradient_norm == Approx(norm).epsilon(1e-6));
    CHECK(third.totals[0].gradient_norm == Approx(norm).epsilon(1e-6));  // the norm before clipping
    CHECK(distance(whole, reference) < 1e-6 * norm);
    CHECK(distance(third, clipped) < 1e-6 * norm);
    // With a learning rate of 1 the update is the gradient. Clipping removes two thirds of it.
    CHECK(distance(whole, third) == Approx(norm * 2 / 3).epsilon(1e-5));
    CHECK(train(spread, {}, once).totals[0].gradient_norm == 0);
  }
}

TEMPLATE_LIST_TEST_CASE("Every strategy gives the losses of Single when gradients are clipped", "[parallel][gradient][equivalence]",
                        Communicators) {
  // The update of Sgd is proportional to the gradient, so clipping changes it.
  constexpr pdp::Task steep{task.model, task.loss, pdp::optim::Sgd{.lr = 0.3f, .momentum = 0.9f}};
  const auto samples = tasks::samples(250);
  for (const Spread& spread : every_strategy()) {
    const auto report = serial_equivalence<TestType>(steep, samples, spread.strategy, spread.ranks,
                                                     {.gradient = {.clip_norm = 0.1, .non_finite = NonFinite::stop}});
    INFO(report.text());
    CHECK(report);
    CHECK(report.strategy().back() < 0.9 * report.strategy().front());
    const auto longer = serial_equivalence<TestType>(steep, samples, spread.strategy, spread.ranks, {.steps = 2});
    CHECK(std::abs(longer.strategy()[1] - report.strategy()[1]) > 1e-3);  // the gradient was clipped
  }
}

TEST_CASE("loss_scaling by a power of two gives the parameters of unscaled training, for every strategy", "[parallel][gradient]") {
  const std::vector<std::vector<float>> batches{large(1), large(2), large(3)};
  for (const Spread& spread : every_strategy())
    for (const double clip_norm : {0.0, 0.3}) {
      const Trained plain = train(spread, {.clip_norm = clip_norm, .non_finite = NonFinite::skip}, batches);
      const Trained scaled = train(spread, {.clip_norm = clip_norm, .loss_scaling = pdp::LossScaling{.initial = 4096}}, batches);
      CHECK(distance(scaled, plain) == 0);
      for (std::size_t step = 0; step < batches.size(); ++step) {
        CHECK(scaled.totals[step].loss == plain.totals[step].loss);
        CHECK(scaled.totals[step].gradient_norm == plain.totals[step].gradient_norm);
        CHECK(scaled.totals[step].loss_scale == 4096);
      }
    }
}

TEST_CASE("loss_scaling shrinks after a non-finite gradient and grows after several finite ones in a row", "[parallel][gradient]") {
  const pdp::LossScaling scaling{.initial = 8, .growth = 4, .backoff = 0.5, .interval = 3};
  const auto bad = with(large(2), 6, infinity);
  for (const Spread& spread : every_strategy()) {
    const Trained found = train(spread, {.non_finite = NonFinite::skip, .loss_scaling = scaling},
                                {large(1), large(2), bad, large(3), large(4), large(5), large(6), bad, bad, large(7)});
    std::vector<double> scales;
    for (const auto& totals : found.totals) scales.push_back(totals.loss_scale);
    CHECK(scales == std::vector<double>{8, 8, 8, 4, 4, 4, 16, 16, 8, 4});
    CHECK(found.totals[2].skipped);
    CHECK(distance(found, train(spread, {.non_finite = NonFinite::skip},
                                {large(1), large(2), large(3), large(4), large(5), large(6), large(7)})) == 0);
  }
}

TEST_CASE("Trainer rejects loss_scaling with invalid values or with NonFinite::stop", "[parallel][gradient][bad input]") {
  for (const pdp::LossScaling& scaling :
       {pdp::LossScaling{.initial = 0}, pdp::LossScaling{.initial = infinity}, pdp::LossScaling{.growth = 0.5},
        pdp::LossScaling{.backoff = 1}, pdp::LossScaling{.backoff = 0}, pdp::LossScaling{.interval = 0}})
    CHECK_THROWS_WITH(train({Single{}, 1}, {.loss_scaling = scaling}, {large(1)}), Contains("loss_scaling has initial = "));
  CHECK_THROWS_WITH(train({Single{}, 1}, {.non_finite = NonFinite::stop, .loss_scaling = pdp::LossScaling{}}, {large(1)}),
                    Contains("NonFinite::stop would end the training then; use NonFinite::skip"));
}

TEST_CASE("NonFinite::skip trains as if a step with a non-finite gradient had never been made", "[parallel][gradient]") {
  const auto adam_task = tasks::residual_classifier(2);
  for (const Spread& spread : every_strategy()) {
    for (const auto& [row, value] : {std::pair<std::size_t, float>{0, not_a_number}, {6, infinity}, {12, -infinity}}) {
      const Trained without = train(spread, {.non_finite = NonFinite::skip}, {large(1), large(3)});
      const Trained skipped = train(spread, {.non_finite = NonFinite::skip}, {large(1), with(large(2), row, value), large(3)});
      CHECK(skipped.totals[1].skipped);
      CHECK_FALSE(std::isfinite(skipped.totals[1].gradient_norm));
      CHECK_FALSE((skipped.totals[0].skipped || skipped.totals[2].skipped));
      CHECK(distance(skipped, without) == 0);
      // Adam counts its updates: a skipped step must not count.
      CHECK(distance(train(spread, {.non_finite = NonFinite::skip}, {large(1), with(large(2), row, value), large(3)}, adam_task),
                     train(spread, {.non_finite = NonFinite::skip}, {large(1), large(3)}, adam_task)) == 0);
      const Trained ignored =
          train(spread, {.clip_norm = 1e6, .non_finite = NonFinite::ignore}, {large(1), with(large(2), row, value), large(3)});
      CHECK(std::isnan(distance(ignored, without)));
    }
  }
}

TEST_CASE("NonFinite::stop throws on every rank and names the rank and tensor of the non-finite gradient", "[parallel][gradient]") {
  for (const Spread& spread : every_strategy()) {
    std::mutex mutex;
    std::vector<std::string> messages;
    std::vector<float> x = with(large(2), 12, not_a_number);  // in the last rank's share, or in the last micro-batch
    const std::vector<float> fine = large(4);
    erased::ranks<comm::Thread>(spread.ranks, [&](comm::Any& world) {
      pdp::Trainer trainer{world, spread.strategy, task, {.global_batch = 13, .seed = 3, .non_finite = NonFinite::stop}};
      const std::vector<std::int32_t> classes(13, 1);
      const pdp::data::Rows rows = pdp::data::shard_rows(13, trainer.share());
      const auto mine_of = [&](const std::vector<float>& all) {
        return std::span{all}.subspan(static_cast<std::size_t>(rows.first) * 8, static_cast<std::size_t>(rows.size()) * 8);
      };
      const auto labels = std::span{classes}.first(static_cast<std::size_t>(rows.size()));
      const auto before = trainer.parameters();
      try {
        trainer.step(mine_of(x), labels);  // if a step does not throw, messages.size() is too small below
      } catch (const pdp::NonFiniteGradient& error) {
        const std::lock_guard lock{mutex};
        messages.emplace_back(error.what());
      }
      // The ranks can go on, with the parameters from before the step.
      const auto after = trainer.parameters();
      trainer.step(mine_of(fine), labels);
      const std::lock_guard lock{mutex};
      for (std::size_t t = 0; t < before.size(); ++t) CHECK(before[t].values == after[t].values);
    });
    REQUIRE(messages.size() == static_cast<std::size_t>(spread.ranks));
    // Backward begins in the last layer, which belongs to the last rank of a pipeline.
    for (const std::string& message : messages) {
      CHECK(message == messages.front());
      CHECK_THAT(message, StartsWith("step 0: the gradient of 4.weight on rank ") &&
                              Contains(" is not finite (NaN or infinity), and no parameter has been "
                                       "changed; look at the samples of that step"));
      CHECK_THAT(message, Contains("on rank " + std::to_string(spread.ranks - 1) + " "));
    }
  }
}

TEST_CASE("NonFinite::stop and skip find gradients that overflow only in the sum over ranks", "[parallel][gradient]") {
  // One sample a rank. Its gradient is 2e28 (that of the output) times 1e10 (the input). Twice that overflows a float.
  constexpr pdp::Task line{nn::Sequential{nn::Linear{1, 1, false}}, pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{.lr = 1}};
  const std::vector<float> x(1, 1e10f);
  const DataParallel data_parallel;
  const std::array<Zero, 3> zero{Zero{.stage = 1}, Zero{.stage = 2}, Zero{.stage = 3}};
  for (const StrategyRef strategy : {StrategyRef{data_parallel}, StrategyRef{zero[0]}, StrategyRef{zero[1]}, StrategyRef{zero[2]}}) {
    const auto tried = [&](NonFinite policy, float second) {
      return erased::ranks<comm::Thread>(2, [&](comm::Any& world) -> std::string {
        pdp::Trainer trainer{world, strategy, line, {.global_batch = 2, .seed = 3, .non_finite = policy}};
        const std::vector<float> target(1, world.rank() == 0 ? -2e28f : second);
        const auto before = trainer.parameters();
        std::string message = "finite";
        try {
          if (trainer.step(x, target).skipped) message = "skipped";
        } catch (const pdp::NonFiniteGradient& error) {
          message = error.what();
        }
        const auto after = trainer.parameters();
        const std::lock_guard lock{checks_mutex};
        for (std::size_t t = 0; t < before.size(); ++t) CHECK((before[t].values == after[t].values) == (message != "finite"));
        return message;
      });
    };
    CHECK(tried(NonFinite::stop, 0) == std::vector<std::string>{"finite", "finite"});
    CHECK(tried(NonFinite::skip, -2e28f) == std::vector<std::string>{"skipped", "skipped"});
    for (const std::string& message : tried(NonFinite::stop, -2e28f))
      CHECK_THAT(message, StartsWith("step 0: the gradient is finite on each rank, but its sum over all ranks is not, and no parameter has "
                                     "been changed; look at"));
  }
}

TEST_CASE("Trainer rejects an invalid clip_norm, and Engine a clip_norm for a plan without the norm", "[parallel][gradient]") {
  for (const double norm : {-1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_WITH(train({Single{}, 1}, {.clip_norm = norm}, {large(1)}),
                      Contains("it must be a positive finite norm, or 0 for no limit"));
  ranks<comm::Thread>(1, [&](comm::Thread& world) {
    const auto& small = tasks::classifier;
    const auto plan = Single{}.plan(nn::outline(small.model, pdp::Shape{8}), {});
    using Engine =
        Engine<comm::Thread, pdp::nn::LeafTypes<std::remove_const_t<decltype(small.model)>>, pdp::loss::CrossEntropy, pdp::optim::Sgd>;
    CHECK_THROWS_WITH(
        (Engine{world, plan, small.model, pdp::Shape{8}, small.loss, small.optimizer, {.rows = 4}, GradientPolicy{.clip_norm = 1}}),
        Contains("needs its norm, which the plan does not compute; make the plan with plan_for(policy, plan)"));
  });
}

}  // namespace gradient_norm_test
