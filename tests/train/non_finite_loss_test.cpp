#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/any.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "captured.hpp"
#include "catch.hpp"
#include "data/files.hpp"
#include "erased.hpp"
#include "support.hpp"

namespace non_finite_loss_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::strategy;
using pdp::Index;
using pdp::plan::NonFinite;
using pdp::testing::normal;

namespace {

constexpr Index rows = 13, inputs = 8, outputs = 4;
constexpr pdp::Task task{nn::Sequential{nn::Linear{inputs, 16}, nn::Linear{16, 16}, nn::Linear{16, 8}, nn::Linear{8, outputs}},
                         pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{.lr = 0.01f}};
using Task = std::remove_const_t<decltype(task)>;
using Trainer = pdp::Trainer<comm::Any, AnyStrategy, Task>;

struct Spread {
  AnyStrategy strategy;
  int ranks;
};
std::vector<Spread> every_strategy() {
  std::vector<Spread> all{{Single{}, 1},
                          {Hybrid<>{.mesh = {.tensor = 2}}, 2},
                          {Hybrid<>{.mesh = {2, 2, 1}, .micro_batches = 2}, 4},
                          {Hybrid<>{.mesh = {2, 1, 2}}, 4},
                          {Hybrid<>{.mesh = {1, 2, 2}, .micro_batches = 3}, 4}};
  for (const int ranks : {2, 4}) {
    all.push_back({DataParallel{.unit_elements = 1}, ranks});
    all.push_back({DataParallel{.accumulate = 2}, ranks});
    all.push_back({Zero{.stage = 1}, ranks});
    all.push_back({Zero{.stage = 2, .accumulate = 2, .unit_elements = 1}, ranks});
    all.push_back({Zero{.stage = 3, .unit_elements = 1}, ranks});
    all.push_back({Pipeline<OneForwardOneBackward>{.micro_batches = 3}, ranks});
    all.push_back({TensorParallel{}, ranks});
  }
  return all;
}

/// A global batch. Each rank takes its share of it.
struct Rows {
  std::vector<float> x = normal(rows * inputs, 1), y = normal(rows * outputs, 2);
};
auto step(Trainer& trainer, const Rows& all) {
  const pdp::data::Rows own = pdp::data::shard_rows(rows, trainer.share());
  const auto part = [&](const std::vector<float>& values, Index width) {
    return std::vector<float>(values.begin() + own.first * width, values.begin() + (own.first + own.size()) * width);
  };
  // These vectors end before finish(), as those of a program may.
  trainer.start(part(all.x, inputs), part(all.y, outputs));
  return trainer.finish();
}

/// A strategy whose ranks do not add up the losses of a step.
struct WithoutTotals {
  [[nodiscard]] Plan plan(const pdp::nn::Outline& model, pdp::plan::RankInWorld at) const {
    Plan plan = DataParallel{}.plan(model, at);
    std::erase_if(plan.step, [](const Instruction& i) { return i.op == Op::totals_start || i.op == Op::totals_wait; });
    return plan;
  }
};

/// The errors that the ranks have thrown, the lowest rank that has the last row of a batch, and the number of that row among the rank's.
struct Ended {
  std::vector<std::string> messages;
  int rank_of_last_row = -1;
  Index last_row = -1;
};
/// Calls train(trainer) on all ranks. All of them must throw NonFiniteLoss with one message.
template <class F>
Ended ended(const Spread& spread, const pdp::TrainerOptions& options, const F& train, const Task& of = task) {
  Ended found;
  std::mutex mutex;
  for (const auto& each : erased::ranks<comm::Thread>(spread.ranks, [&](comm::Any& world) -> std::string {
         Trainer trainer{world, spread.strategy, of, options};
         const pdp::data::Rows own = pdp::data::shard_rows(rows, trainer.share());
         if (own.first + own.size() == rows && own.size() > 0) {
           const std::lock_guard lock{mutex};
           found.rank_of_last_row = found.rank_of_last_row < 0 ? world.rank() : std::min(found.rank_of_last_row, world.rank());
           found.last_row = own.size() - 1;
         }
         try {
           train(trainer);
         } catch (const pdp::NonFiniteLoss& error) {
           world.barrier();  // the world is as good as before
           return error.what();
         }
         return "nothing was thrown";
       }))
    found.messages.push_back(each);
  for (const std::string& message : found.messages) CHECK(message == found.messages.front());
  return found;
}

constexpr pdp::TrainerOptions usual{.global_batch = rows, .seed = 3};

}  // namespace

TEST_CASE("Trainer stops by default at a NaN in the data of one rank, and every rank names rank, tensor and step", "[train][non_finite]") {
  const bool of_targets = GENERATE(false, true);
  Rows bad;
  (of_targets ? bad.y : bad.x).back() = pdp::not_a_number<float>();
  for (const Spread& spread : every_strategy()) {
    const Ended found = ended(spread, usual, [&](Trainer& trainer) {
      step(trainer, {});
      step(trainer, bad);
    });
    const std::string& message = found.messages.front();
    CHECK_THAT(message, StartsWith("step 1: the loss is NaN; on rank "));
    CHECK_THAT(message, Contains(of_targets ? " values of the targets is not finite (NaN or infinity), the first in row "
                                            : " values of the input is not finite (NaN or infinity), the first in row "));
    CHECK_THAT(message, Contains("; look at the samples of that step, or skip such steps (NonFinite::skip); the parameters have been"));
    if (of_targets) continue;  // those of a pipeline are read on its last rank
    CHECK_THAT(message, Contains(pdp::text("; on rank ", found.rank_of_last_row, ", ")));
    CHECK_THAT(message, Contains(pdp::text(" in row ", found.last_row, " of that rank")));
  }
}

TEST_CASE("Trainer stops by default when a training diverges, and every rank names rank, tensor and step", "[train][non_finite]") {
  constexpr Task steep{task.model, task.loss, pdp::optim::Sgd{.lr = 100}};
  for (const Spread& spread : every_strategy()) {
    std::int64_t last = -1;
    const auto diverge = [&](Trainer& trainer) {
      while (trainer.steps() < 30) {
        if (trainer.world().rank() == 0) last = trainer.steps();
        step(trainer, {});
      }
    };
    const std::string message = ended(spread, usual, diverge, steep).messages.front();
    CHECK(last > 0);
    CHECK_THAT(message, StartsWith(pdp::text("step ", last, ": the loss is ")));
    CHECK_THAT(message, Contains("; on rank 0, ") && Contains(" values of the parameter 0.weight are not finite (NaN or infinity); lower"));
    CHECK_THAT(message, Contains("; lower the learning rate, clip the gradient (clip_norm), look at the samples of that step, or skip"));
    CHECK_THAT(message, EndsWith("the parameters have been updated since, so continue from the last good checkpoint"));
  }
}

TEST_CASE("A NonFiniteLoss names the tensor as it was before a step that loss scaling has skipped", "[train][non_finite]") {
  pdp::TrainerOptions scaled = usual;
  scaled.loss_scaling.emplace();
  comm::Self self;
  const auto initial = pdp::Trainer{self, Single{}, task, usual}.parameters();
  const auto after_step_with = [&](const Spread& spread, const std::vector<pdp::checkpoint::Tensor>& parameters) {
    return ended(spread, scaled,
                 [&](Trainer& trainer) {
                   trainer.set_parameters(parameters, "memory");
                   step(trainer, {});
                 })
        .messages.front();
  };
  for (const Spread& spread : every_strategy()) {
    auto one_wrong = initial, too_large = initial;
    REQUIRE(one_wrong[4].name == "2.weight");
    one_wrong[4].values.back() = -pdp::positive_infinity<float>();
    const std::string of_parameter = after_step_with(spread, one_wrong);
    CHECK_THAT(of_parameter, StartsWith("step 0: the loss is ") && Contains(", 1 of the "));
    CHECK_THAT(of_parameter, Contains(" values of the parameter 2.weight is not finite (NaN or infinity); lower the learning rate"));
    CHECK_THAT(of_parameter, EndsWith("; the gradient was not finite, so no parameter has been changed"));
    for (auto& tensor : too_large)
      for (float& value : tensor.values) value *= 1e12f;
    CHECK_THAT(after_step_with(spread, too_large), Contains(" values of the gradient of 3.bias are not finite (NaN or infinity); lower"));
  }
}

TEST_CASE("NonFinite::ignore goes on after a loss that is not finite", "[train][non_finite]") {
  pdp::TrainerOptions ignoring = usual;
  ignoring.non_finite = NonFinite::ignore;
  Rows bad;
  bad.x.back() = pdp::not_a_number<float>();
  for (const Spread& spread : every_strategy())
    CHECK_THAT(captured(
                   [&] {
                     for (const auto& steps : erased::ranks<comm::Thread>(spread.ranks, [&](comm::Any& world) {
                            Trainer trainer{world, spread.strategy, task, ignoring};
                            for (const Rows& each : {Rows{}, bad, Rows{}}) step(trainer, each);
                            return trainer.steps();
                          }))
                       CHECK(steps == 3);
                   },
                   stderr),
               StartsWith("pdp: the loss of step 1 is NaN"));
}

TEST_CASE("A fit that ends with a NonFiniteLoss leaves its last checkpoint, from which it can go on", "[train][non_finite]") {
  const Index samples = 64;
  const std::vector<float> x = normal(samples * inputs, 5), y = normal(samples * outputs, 6);
  auto wrong = x;
  wrong[(5 * 8 + 6) * inputs] = pdp::not_a_number<float>();  // in step 5
  const pdp::data::InMemory<float> good{pdp::Shape{inputs}, x, y, pdp::Shape{outputs}},
      bad{pdp::Shape{inputs}, wrong, y, pdp::Shape{outputs}};
  for (const bool asynchronous : {false, true})
    for (const Spread& spread : every_strategy()) {
      const files::TemporaryFolder folder;
      const pdp::FitOptions fit{.epochs = 2,
                                .shuffle = false,
                                .progress = false,
                                .checkpoint = {.directory = folder / "run", .every_steps = 2, .asynchronous = asynchronous}};
      const Ended found =
          ended(spread, {.global_batch = 8, .seed = 3}, [&](Trainer& trainer) { trainer.fit(bad, fit, [](const pdp::Epoch&) {}); });
      CHECK_THAT(found.messages.front(), StartsWith("step 5: the loss is NaN; on rank ") && Contains(" 1 of the "));
      const auto left = pdp::checkpoint::checkpoints_in(folder / "run");
      REQUIRE(!left.empty());
      CHECK(left.back().step == (asynchronous ? left.back().step : 4));
      for (const auto& [loss, steps] : erased::ranks<comm::Thread>(spread.ranks, [&](comm::Any& world) {
             Trainer trainer{world, spread.strategy, task, {.global_batch = 8, .seed = 3}};
             const auto epochs = trainer.fit(good, fit, [](const pdp::Epoch&) {});
             return std::pair{epochs.back().loss, trainer.steps()};
           })) {
        CHECK(std::isfinite(loss));
        CHECK(steps == 16);
      }
    }
}

TEST_CASE("A fit saves no checkpoint after an update that makes parameters infinite, and every rank says so", "[train][non_finite]") {
  std::vector<float> large = normal(8 * inputs, 5);
  for (float& value : large) value *= 1000;
  const std::vector<float> y = normal(8 * outputs, 6);
  const pdp::data::InMemory<float> usual_data{pdp::Shape{inputs}, normal(8 * inputs, 4), y, pdp::Shape{outputs}},
      large_data{pdp::Shape{inputs}, large, y, pdp::Shape{outputs}};
  for (const Spread& spread : every_strategy()) {
    const files::TemporaryFolder folder;
    const pdp::FitOptions fit{.progress = false, .checkpoint = {.directory = folder / "run", .keep = 1}};
    const Ended found = ended(spread, {.global_batch = 8, .seed = 3}, [&](Trainer& trainer) {
      trainer.fit(usual_data, fit, [](const pdp::Epoch&) {});
      trainer.set_learning_rate_factor(1e38);
      trainer.fit(large_data, fit, [](const pdp::Epoch&) {});
    });
    CHECK_THAT(found.messages.front(), StartsWith("after 2 steps: on rank 0, "));
    CHECK_THAT(found.messages.front(),
               Contains(" values of the parameter 0.weight are not finite (NaN or infinity), so no checkpoint is "));
    CHECK_THAT(found.messages.front(), EndsWith(", and continue from the last checkpoint"));
    const auto left = pdp::checkpoint::checkpoints_in(folder / "run");
    REQUIRE(left.size() == 1);
    CHECK(left.front().step == 1);
    // NonFinite::ignore saves such parameters.
    const files::TemporaryFolder ignored;
    erased::ranks<comm::Thread>(spread.ranks, [&](comm::Any& world) {
      Trainer trainer{world, spread.strategy, task, {.global_batch = 8, .seed = 3, .non_finite = NonFinite::ignore}};
      trainer.set_learning_rate_factor(1e38);
      trainer.fit(large_data, {.progress = false, .checkpoint = {.directory = ignored / "run"}}, [](const pdp::Epoch&) {});
    });
    CHECK(pdp::checkpoint::checkpoints_in(ignored / "run").size() == 1);
  }
}

TEST_CASE("A program may catch a NonFiniteLoss, load a checkpoint and go on", "[train][non_finite]") {
  Rows bad;
  bad.x.front() = pdp::positive_infinity<float>();
  for (const Spread& spread : every_strategy()) {
    const files::TemporaryFolder folder;
    for (const auto& [wrong, losses] : erased::ranks<comm::Thread>(spread.ranks, [&](comm::Any& world) {
           Trainer trainer{world, spread.strategy, task, usual};
           step(trainer, {});
           trainer.save(folder / "run");
           std::vector<double> losses{step(trainer, {}).loss};
           int thrown = 0;
           try {
             step(trainer, bad);
           } catch (const pdp::NonFiniteLoss&) {
             ++thrown;
           }
           trainer.load(folder / "run");
           losses.push_back(step(trainer, {}).loss);
           return std::pair{thrown, losses};
         })) {
      CHECK(wrong == 1);
      CHECK(losses[0] == losses[1]);
    }
  }
}

TEST_CASE("Trainer throws PlanError for a plan without totals, unless it ignores losses that are not finite", "[train][non_finite]") {
  pdp::testing::ranks<comm::Thread>(2, [](comm::Thread& world) {
    comm::Any any = comm::Any::borrow(world);
    const AnyStrategy strategy{WithoutTotals{}};
    const auto make = [&](NonFinite policy) { Trainer{any, strategy, task, {.global_batch = 8, .seed = 3, .non_finite = policy}}; };
    make(NonFinite::ignore);
    const auto message = support::message_of<pdp::PlanError>([&] { make(NonFinite::stop_on_loss); });
    const std::lock_guard lock{checks_mutex};
    CHECK_THAT(message.value_or("nothing was thrown"), StartsWith("stopping at a loss that is not finite needs the totals of each step"));
  });
}

}  // namespace non_finite_loss_test
