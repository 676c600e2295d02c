#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/grouped.hpp>
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
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace parameter_groups_test {

namespace nn = pdp::nn;
namespace optim = pdp::optim;
namespace strategy = pdp::strategy;
using optim::ParameterGroup, optim::ParameterInfo;
using pdp::Index;
using pdp::checkpoint::Tensor;
using pdp::comm::Thread;

namespace {

constexpr ParameterGroup first_layer{
    .chooses = [](const ParameterInfo& of) { return of.layer == "0"; }, .lr_factor = 0.25f, .decay_factor = 2};
constexpr ParameterGroup frozen_weight{.chooses = [](const ParameterInfo& of) { return of.name == "2.weight"; }, .is_frozen = true};
constexpr ParameterGroup everything{.chooses = [](const ParameterInfo&) { return true; }};
constexpr ParameterGroup nothing{.chooses = [](const ParameterInfo& of) { return of.kind == "gain"; }};

/// A task with three parameter groups, which have no effect by default.
auto task(Index in, Index hidden, Index narrow, Index out, const ParameterGroup& first = everything,
          const ParameterGroup& second = everything, const ParameterGroup& third = everything) {
  return pdp::Task{nn::Sequential{nn::Linear{in, hidden}, nn::Tanh{}, nn::Linear{hidden, narrow}, nn::Tanh{}, nn::Linear{narrow, out}},
                   pdp::loss::MeanSquaredError{}, optim::Grouped{optim::AdamW{.lr = 0.05f, .weight_decay = 0.3f}, first, second, third}};
}
auto grouped() { return task(6, 24, 12, 4, optim::no_decay_on_biases_and_norms, first_layer, frozen_weight); }

using TaskType = std::remove_const_t<decltype(grouped())>;
using Trainer = pdp::Trainer<Thread, strategy::AnyStrategy, TaskType>;

constexpr pdp::TrainerOptions options{.global_batch = 12, .seed = 5, .clip_norm = 0.1};

struct Way {
  std::string name;
  int ranks;
  strategy::AnyStrategy strategy;
};

std::vector<Way> ways() {
  using Schedule = strategy::OneForwardOneBackward;
  std::vector<Way> all{{"single", 1, strategy::Single{}}, {"single in pieces", 1, strategy::Single{.accumulate = 3}}};
  for (const int ranks : {2, 3}) {
    all.push_back({"data", ranks, strategy::DataParallel{}});
    all.push_back({"data in units", ranks, strategy::DataParallel{.unit_elements = 1}});
    for (const int stage : {1, 2, 3}) all.push_back({"zero " + std::to_string(stage), ranks, strategy::Zero{.stage = stage}});
    all.push_back({"pipeline", ranks, strategy::Pipeline<Schedule>{.micro_batches = 3}});
  }
  all.push_back({"tensor", 2, strategy::TensorParallel{}});
  all.push_back({"hybrid", 4, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .tensor = 2}}});
  all.push_back({"hybrid", 8, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = 2}});
  return all;
}

pdp::data::InMemory<float> samples() {
  constexpr std::size_t count = 34;  // 3 batches an epoch, the last one of 10 rows
  return {pdp::Shape{6}, pdp::testing::normal(count * 6, 3), pdp::testing::normal(count * 4, 4), pdp::Shape{4}};
}

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> before, after;
  double frozen_state = 0;  // sum of the magnitudes of the optimizer's state of frozen parameters, of all ranks
};

/// Trains for some epochs, from a checkpoint if `from` is given. Saves one to `to` after step 4, if that is given.
Run train(const Way& way, const TaskType& task, int epochs, const std::filesystem::path& from = {}, const std::filesystem::path& to = {}) {
  auto runs = pdp::testing::ranks<Thread>(way.ranks, [&](Thread& world) {
    Trainer trainer{world, way.strategy, task, options};
    Run made;
    made.before = trainer.parameters();
    if (!from.empty()) trainer.load(from);
    trainer.fit(
        samples(), {.epochs = epochs}, [](const pdp::Epoch&) {},
        [&](std::int64_t step, const auto& totals) {
          made.losses.push_back(totals.mean_loss());
          if (step == 3 && !to.empty()) trainer.save(to);
        });
    made.after = trainer.parameters();
    for (const auto& part : trainer.engine().state().updated()) {
      if (part.field < 0 || part.parameter->full_name() != "2.weight") continue;
      for (const float value : part.values) made.frozen_state += static_cast<double>(std::abs(value));
    }
    return made;
  });
  for (std::size_t rank = 1; rank < runs.size(); ++rank) runs.front().frozen_state += runs[rank].frozen_state;
  return std::move(runs.front());
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected, std::size_t first = 0) {
  REQUIRE(found.size() + first == expected.size());
  for (std::size_t step = 0; step < found.size(); ++step) {
    CAPTURE(step);
    REQUIRE_THAT(found[step], WithinRel(expected[first + step], 2e-5));
  }
}

/// Returns the error message of each rank that makes a trainer of its task.
std::vector<std::string> told(int size, const TaskType& task, const TaskType& of_last) {
  return pdp::testing::ranks<Thread>(size, [&](Thread& world) -> std::string {
    try {
      const Trainer trainer{world, strategy::DataParallel{}, world.rank() == size - 1 ? of_last : task, options};
    } catch (const pdp::ConfigError& error) {
      return error.what();
    }
    return "";
  });
}

}  // namespace

TEST_CASE("Parameter groups train as those of PyTorch 2.15", "[train][parameter_groups]") {
  pdp::comm::Thread world = std::move(Thread::world(1).front());
  Trainer trainer{world,
                  strategy::Single{},
                  task(3, 4, 2, 2, optim::no_decay_on_biases_and_norms, first_layer, frozen_weight),
                  {.global_batch = 4, .clip_norm = 0.2}};
  std::vector<Tensor> start = trainer.parameters();
  for (std::size_t k = 0; k < start.size(); ++k)
    for (std::size_t i = 0; i < start[k].values.size(); ++i)
      start[k].values[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + static_cast<double>(k)));
  trainer.set_parameters(start, "the test");
  std::vector<float> x, y;
  for (int i = 0; i < 12; ++i) x.push_back(static_cast<float>(std::cos(0.9 * i)));
  for (int i = 0; i < 8; ++i) y.push_back(static_cast<float>(std::cos(2.3 * i)));
  for (const double expected : {2.59497211, 2.24546664, 1.93865565, 1.66937623, 1.43623448, 1.23778502})
    CHECK_THAT(trainer.step(x, y).mean_loss(), WithinRel(expected, 1e-5));
  const std::vector<std::vector<double>> expected{
      {-0.071913, 1.021343, -0.170247, -0.811402, 0.401991, 0.689218, -0.596728, -0.660733, 0.747144, 0.305771, -0.978420, -0.068512},
      {0.766602, 0.502395, -0.883054, -0.256645},
      {0.909297, -0.529836, -0.772765, 0.728969, 0.584917, -0.879696, -0.358229, 0.972008},
      {-0.153758, -1.298587},
      {-0.402217, -0.641088, 0.530726, 0.039329},
      {-0.659377, 0.105190}};
  const std::vector<Tensor> found = trainer.parameters();
  REQUIRE(found.size() == expected.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    for (std::size_t i = 0; i < expected[k].size(); ++i)
      CHECK(static_cast<double>(found[k].values[i]) == Approx(expected[k][i]).margin(3e-6));
}

TEST_CASE("Parameter groups give the losses of Single and frozen parameters keep their bits under every strategy",
          "[train][parameter_groups]") {
  const Run single = train(ways().front(), grouped(), 4);
  const Run plain = train(ways().front(), task(6, 24, 12, 4), 4);
  CHECK(std::abs(single.losses.back() - plain.losses.back()) > 1e-3);
  for (const Way& way : ways()) {
    CAPTURE(way.name, way.ranks);
    const Run run = train(way, grouped(), 4);
    check_close(run.losses, single.losses);
    REQUIRE(run.after.size() == 6);
    for (std::size_t t = 0; t < 6; ++t) {
      CAPTURE(run.after[t].name);
      CHECK((run.after[t].values == run.before[t].values) == (run.after[t].name == "2.weight"));
    }
    CHECK(run.frozen_state == 0);
  }
}

TEST_CASE("A training with parameter groups continues from a checkpoint of any strategy", "[train][parameter_groups]") {
  const files::TemporaryFolder folder;
  const std::vector<Way> all = ways();
  const Run uninterrupted = train(all.front(), grouped(), 4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto saved = folder / std::to_string(i);
    const Run whole = train(all[i], grouped(), 4, {}, saved);
    const Run same = train(all[i], grouped(), 3, saved);  // the rest of epoch 1, and two more
    CAPTURE(all[i].name, all[i].ranks);
    CHECK(same.losses == std::vector<double>(whole.losses.begin() + 4, whole.losses.end()));
    for (std::size_t t = 0; t < 6; ++t) CHECK(same.after[t].values == whole.after[t].values);
    const Way& other = all[(5 * i + 3) % all.size()];
    CAPTURE(other.name, other.ranks);
    check_close(train(other, grouped(), 3, saved).losses, uninterrupted.losses, 4);
  }
}

TEST_CASE("A training with a frozen layer begins from a checkpoint of one without", "[train][parameter_groups]") {
  const files::TemporaryFolder folder;
  const Way way{"zero 3", 3, strategy::Zero{.stage = 3}};
  train(way, task(6, 24, 12, 4), 2, {}, folder / "run");
  const Run first = train(way, task(6, 24, 12, 4), 0, folder / "run"), second = train(way, grouped(), 1, folder / "run");
  CHECK(second.after[2].values == first.after[2].values);
  CHECK(second.after[0].values != first.after[0].values);
}

TEST_CASE("Trainer throws on every rank if the ranks' parameter groups differ", "[train][parameter_groups]") {
  const int size = GENERATE(2, 3);
  const auto is_told = [&](const ParameterGroup& of_last) {
    for (const std::string& each : told(size, grouped(), task(6, 24, 12, 4, optim::no_decay_on_biases_and_norms, first_layer, of_last)))
      CHECK(each == pdp::text("rank ", size - 1, " was given another set of parameter groups than rank 0; give all ranks the same value"));
  };
  is_told(everything);
  is_told(nothing);
  is_told({.chooses = [](const ParameterInfo& of) { return of.name == "2.bias"; }, .is_frozen = true});
  is_told({.chooses = frozen_weight.chooses, .lr_factor = 0.5f, .is_frozen = true});
  for (const std::string& each : told(size, grouped(), grouped())) CHECK(each.empty());
}

TEST_CASE("Trainer throws on every rank if a parameter group has no predicate, a wrong factor, or chooses nothing",
          "[train][parameter_groups]") {
  const auto is_told = [](const ParameterGroup& group, const std::string& words) {
    const auto wrong = task(6, 24, 12, 4, everything, group);
    for (const std::string& each : told(2, wrong, wrong)) CHECK_THAT(each, StartsWith(words));
  };
  is_told(nothing,
          "parameter group 1 of the optimizer (counted from 0) chooses none of the model's 6 parameters (0.weight, 0.bias, 2.weight, "
          "2.bias, ...); change its predicate, or leave the group out");
  is_told({.lr_factor = 2}, "parameter group 1 of the optimizer (counted from 0) has no predicate; set its member `chooses`");
  is_told({.chooses = everything.chooses, .lr_factor = -1},
          "parameter group 1 of the optimizer (counted from 0) has the factor -1; give it a finite number from 0 on");
  is_told({.chooses = everything.chooses, .decay_factor = std::nanf("")},
          "parameter group 1 of the optimizer (counted from 0) has the factor nan");
}

}  // namespace parameter_groups_test
