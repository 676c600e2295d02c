#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include "catch.hpp"
#include "data/files.hpp"

namespace trainer_move_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using pdp::strategy::DataParallel, pdp::strategy::Single;
using pdp::testing::same_bits;

namespace {

constexpr pdp::Task task{nn::Sequential{nn::Linear{4, 9}, nn::Tanh{}, nn::Linear{9, 2}}, pdp::loss::CrossEntropy{},
                         pdp::optim::Adam{.lr = 0.02f}};
constexpr pdp::TrainerOptions options{.global_batch = 13, .seed = 4};

using InFloat = pdp::TrainerFor<comm::Self, Single, decltype(task)>;
static_assert(std::same_as<InFloat, decltype(pdp::Trainer{std::declval<comm::Self&>(), Single{}, task, options})>);
static_assert(std::same_as<pdp::TrainerFor<comm::Self&, const Single&, decltype(task)&>, InFloat>);
static_assert(std::same_as<pdp::TrainerFor<comm::Self, Single, decltype(task), pdp::cpu::Cpu>, InFloat>);
static_assert(std::same_as<pdp::TrainerFor<comm::Self, Single, decltype(task), pdp::Float64>,
                           decltype(pdp::Trainer{std::declval<comm::Self&>(), Single{}, task, options, pdp::Float64{}})>);
static_assert(std::same_as<pdp::TrainerFor<comm::Self, Single, decltype(task), const pdp::cpu::Cpu&, pdp::Float64>,
                           pdp::TrainerFor<comm::Self, Single, decltype(task), pdp::Float64>>);
static_assert(std::is_nothrow_move_constructible_v<InFloat> && std::is_nothrow_move_assignable_v<InFloat>);
static_assert(!std::is_copy_constructible_v<InFloat> && !std::is_copy_assignable_v<InFloat>);

pdp::data::InMemory<std::int32_t> samples(std::size_t count) {
  const auto x = pdp::testing::normal(4 * count, 6);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 4) classes.push_back(row[0] > row[1] ? 1 : 0);
  return {pdp::Shape{4}, x, classes};
}

/// A simulation that owns a trainer and its samples.
class Simulation {
 public:
  explicit Simulation(comm::Thread& world) : trainer_{world, DataParallel{}, task, options} {}
  std::vector<float> learn(int steps) {
    const auto x = pdp::testing::normal(3 * 4, 6);
    const std::vector<std::int32_t> classes{0, 1, 1};
    for (int step = 0; step < steps; ++step) trainer_.step(x, classes);
    return trainer_.predict(x);
  }

 private:
  pdp::TrainerFor<comm::Thread, DataParallel, decltype(task)> trainer_;
};

template <class C>
auto made(C& world) {
  pdp::Trainer trainer{world, DataParallel{}, task, options};
  trainer.request_stop();
  return trainer;
}

}  // namespace

TEST_CASE("A class with a Trainer moves between steps without a change of results", "[train][move]") {
  const auto same = pdp::testing::ranks<comm::Thread>(3, [](comm::Thread& world) {
    Simulation stays{world};
    stays.learn(4);
    const auto expected = stays.learn(3);
    std::vector<Simulation> all;
    all.emplace_back(world).learn(4);
    all.emplace_back(world);  // moves the first one to other memory
    all.emplace_back(world);
    std::optional<Simulation> last{std::move(all.front())};
    all.front() = std::move(all.back());
    return same_bits(last->learn(3), expected) && all.front().learn(1) == all[1].learn(1);
  });
  CHECK(same == std::vector<bool>{true, true, true});
}

TEST_CASE("A moved Trainer continues a fit, with checkpoints, validation and the same results", "[train][move]") {
  const files::TemporaryFolder folder;
  const auto data = samples(100);
  const auto found = pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
    const auto quiet = [](const pdp::Epoch&) {};
    pdp::Trainer stays{world, DataParallel{}, task, options};
    stays.fit(data, {.epochs = 2}, quiet);
    const auto expected = stays.fit(data, {.epochs = 2, .validation = &data}, quiet);

    pdp::Trainer first{world, DataParallel{}, task, options};
    first.fit(data, {.epochs = 2, .checkpoint = {.directory = folder.path()}}, quiet);
    pdp::Trainer second = std::move(first);
    first = made(world);
    const auto history = second.fit(data, {.epochs = 2, .checkpoint = {.directory = folder.path()}, .validation = &data}, quiet);
    first.load(folder.path());

    const std::vector<float> x(4, 0.5f);
    return first.steps() == second.steps() && history.back().loss == expected.back().loss &&
           history.back().validation->mean_loss() == expected.back().validation->mean_loss() &&
           same_bits(first.predict(x), second.predict(x)) && same_bits(stays.predict(x), second.predict(x));
  });
  CHECK(found == std::vector<bool>{true, true});
}

TEST_CASE("A Trainer that is assigned to releases its world, and keeps what was asked of the other", "[train][move]") {
  const std::vector<float> x(4, 0.5f);
  const std::vector<std::int32_t> classes{1};
  comm::Self world;
  auto trainer = made(world);
  CHECK(trainer.step(x, classes).stops == 1);
  {
    comm::Self other;
    auto replaced = made(other);
    trainer = std::move(replaced);
    CHECK(trainer.steps() == 0);
    trainer = made(world);
  }
  CHECK(trainer.step(x, classes).stops == 1);
}

TEST_CASE("A Trainer over comm::Any and a pipeline moves between start and finish", "[train][move]") {
  const auto found = pdp::testing::ranks<comm::Thread>(2, [](comm::Thread& thread) {
    comm::Any world = comm::Any::borrow(thread);
    const auto x = pdp::testing::normal(13 * 4, 6);
    const std::vector<std::int32_t> classes(13, 1);
    pdp::TrainerFor<comm::Any, pdp::strategy::Pipeline<>, decltype(task)> trainer{world, pdp::strategy::Pipeline<>{.micro_batches = 3},
                                                                                  task, options};
    const double before = trainer.step(x, classes).loss;
    trainer.start(x, classes);
    auto moved = std::move(trainer);
    return moved.finish().loss < before;
  });
  CHECK(found == std::vector<bool>{true, true});
}

}  // namespace trainer_move_test
