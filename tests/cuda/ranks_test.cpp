#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/engine/channels.hpp>
#include <pdp/launch/run.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "course.hpp"
#include "stand_in.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace ranks_test {

// Trains models on several GPUs over NCCL, on the stand-ins for CUDA and NCCL.

namespace comm = pdp::comm;
namespace engine = pdp::engine;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using courses::start_of, courses::train;
using pdp::Trainer;

namespace {

/// The numbers that a rank gives to a step: none, the rows of all ranks, or also those of each share.
enum class Given { nothing, global_rows, share_rows };

/// The results of a few steps of two ranks.
struct Told {
  std::vector<double> losses;
  std::string refusal;  // the error that ended the steps, if any
  int launched = 0;     // graphs of both ranks
};
/// Trains a classifier on two ranks. `rows` holds the shares of each step, and `graphs` the option of each rank's device.
Told step_by_step(const strategy::AnyStrategy& strategy, const std::vector<std::array<pdp::Index, 2>>& rows, std::array<bool, 2> graphs,
                  Given given = Given::global_rows) {
  const int before = stand_in::graphs_launched();
  const auto told = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const auto width = static_cast<pdp::Index>(tasks::samples(1).sample_shape().elements());
    Trainer trainer{world,
                    strategy,
                    tasks::residual_classifier(2),
                    {.global_batch = 16, .seed = 3},
                    pdp::cuda::Device{{.index = world.device(), .graphs = graphs[rank]}}};
    Told own;
    const auto [index, count] = trainer.share();  // count is 1 if the ranks divide the model
    for (const auto& shares : rows) {
      const pdp::Index own_rows = shares[static_cast<std::size_t>(index)], all = count == 1 ? own_rows : shares[0] + shares[1];
      const auto x = support::normal(own_rows * width, index);
      const std::vector<std::int32_t> classes(static_cast<std::size_t>(own_rows), 1);
      const auto refusal = support::message_of<pdp::ConfigError>([&] {
        const std::span share_rows = std::span{shares}.first(given == Given::share_rows ? 2 : 0);
        own.losses.push_back(trainer.step(x, classes, given == Given::nothing ? 0 : all, share_rows).loss);
      });
      if (refusal) return Told{own.losses, *refusal};
      if (own.losses.size() == 3) static_cast<void>(trainer.predict(support::normal(width, 0)));  // between recorded steps
    }
    return own;
  });
  CHECK(told[0].losses == told[1].losses);
  return {told[0].losses, told[0].refusal + told[1].refusal, stand_in::graphs_launched() - before};
}

}  // namespace

TEST_CASE("Ranks over Nccl launch a step as one graph from its second run on, with equal losses", "[cuda][nccl]") {
  stand_in::reset();
  const std::vector<std::array<pdp::Index, 2>> rows{{8, 8}, {8, 8}, {3, 2}, {8, 8}, {3, 2}, {3, 2}, {8, 8}};
  const auto check_strategy = [&](const strategy::AnyStrategy& strategy, bool is_recorded = true) {
    const Told expected = step_by_step(strategy, rows, {false, false}), found = step_by_step(strategy, rows, {true, true});
    CHECK(expected.launched == 0);
    CHECK(found.launched == (is_recorded ? 2 * 5 : 0));
    CHECK(found.losses.size() == rows.size());
    CHECK(found.losses == expected.losses);
  };
  for (const int looks : {0, 3}) {
    stand_in::settings().looks_until_launched = looks;
    check_strategy(strategy::DataParallel{});
    check_strategy(strategy::DataParallel{.accumulate = 2});
    check_strategy(strategy::Zero{.stage = 3, .accumulate = 2});
    check_strategy(strategy::Hybrid<>{.mesh = {.data = 2}});
    check_strategy(strategy::Pipeline<>{.micro_batches = 3}, false);  // not recorded, as its messages wait for each other on a device
    check_strategy(strategy::Pipeline<plan::Interleaved>{.micro_batches = 4}, false);
    check_strategy(strategy::TensorParallel{});
  }
  stand_in::reset();
}

TEST_CASE("Ranks over Nccl record steps only if all do, and reject changed shares of a recorded step", "[cuda][nccl][bad input]") {
  stand_in::reset();
  const std::vector<std::array<pdp::Index, 2>> same{{8, 8}, {8, 8}, {8, 8}}, moved{{5, 4}, {5, 4}, {4, 5}, {5, 4}, {4, 5}};
  constexpr strategy::DataParallel strategy;
  CHECK(step_by_step(strategy, same, {true, false}).launched == 0);
  const Told refused = step_by_step(strategy, moved, {true, true});
  CHECK(refused.losses.size() == 2);
  CHECK_THAT(refused.refusal, Contains("rank 0 has 4 of 9 rows, but had 5 when such a step was recorded") &&
                                  Contains("rank 1 has 5 of 9 rows, but had 4") && Contains("global_rows = 0"));
  for (const Given given : {Given::nothing, Given::share_rows}) {
    const Told accepted = step_by_step(strategy, moved, {true, true}, given);
    CHECK(accepted.launched == 2 * 3);
    CHECK(accepted.losses == step_by_step(strategy, moved, {false, false}).losses);
  }
}

TEST_CASE("Channels over Nccl connect before the first step, so an unmatched send blocks no barrier", "[cuda][nccl]") {
  stand_in::reset();
  const auto errors = pdp::testing::errors<comm::Nccl>(2, [](comm::Nccl& world) {
    world.deadline(std::chrono::seconds{2});
    const pdp::cuda::Device device{{.index = world.device()}};
    const bool sends = world.rank() == 0;
    plan::Plan plan;
    for (const int micro_batch : {0, 1})
      plan.step.push_back(plan::message(sends ? plan::Op::send_start : plan::Op::receive_start, plan::Tensor::activation, micro_batch, 1,
                                        1 - world.rank()));
    const engine::Groups<comm::Nccl> groups{world, plan};
    engine::Channels<comm::Nccl> channels{groups, plan, device};
    pdp::cuda::Memory<float> values{device, 100};
    std::vector<comm::Nccl::Work> works;
    const auto start = [&] {
      for (const plan::Instruction& i : plan.step) {
        const auto [group, peer] = channels.way(i);
        works.push_back(sends ? group.send_async(values.span(), peer) : group.recv_async(values.span(), peer));
      }
    };
    if (sends) start();
    world.barrier();
    if (!sends) start();
    for (auto& work : works) work.wait();
  });
  for (const auto& error : errors) CHECK(error.what() == "nothing was thrown");
}

TEST_CASE("Ranks over Nccl train equally on batches in GPU memory and in host memory", "[cuda][nccl]") {
  stand_in::reset();
  const auto width = static_cast<pdp::Index>(tasks::samples(1).sample_shape().elements());
  const std::vector<std::int32_t> classes{0, 1, 2, 0};
  const auto losses = [&](bool on_device) {
    return pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
      const pdp::cuda::Device device{{.index = world.device()}};
      Trainer trainer{world, strategy::DataParallel{}, tasks::residual_classifier(2), {.global_batch = 8, .seed = 3}, device};
      std::vector<double> found;
      std::vector<pdp::DeviceMemory<pdp::cuda::Device, float>> x_there;
      std::vector<pdp::DeviceMemory<pdp::cuda::Device, std::int32_t>> classes_there;
      for (int step = 0; step < 6; ++step) {
        const auto x = support::normal(4 * width, 10 * world.rank() + step);
        x_there.push_back(allocate<float>(device, 4 * width));
        classes_there.push_back(allocate<std::int32_t>(device, 4));
        upload(device, std::span<const float>{x}, x_there.back().data());
        upload(device, std::span<const std::int32_t>{classes}, classes_there.back().data());
        if (on_device)
          trainer.engine().start({{x_there.back().data(), 4, width}, std::as_const(classes_there.back()).span(), 8, /*on_device*/ true});
        else
          trainer.engine().start({{x.data(), 4, width}, classes, 8});
        found.push_back(trainer.engine().finish().loss);
      }
      return found;
    });
  };
  CHECK(losses(true) == losses(false));
}

TEST_CASE("Ranks over Nccl sum and gather parameters in memory that all of them have registered", "[cuda][nccl]") {
  stand_in::reset();
  const auto width = static_cast<pdp::Index>(tasks::samples(1).sample_shape().elements());
  const auto traffic_of = [&](int steps, const strategy::AnyStrategy& strategy, int ranks, auto precision) {
    const stand_in::Traffic before = stand_in::traffic();
    pdp::testing::ranks<comm::Nccl>(ranks, [&](comm::Nccl& world) {
      Trainer trainer{
          world,    strategy, tasks::residual_classifier(2), {.global_batch = 32, .seed = 3}, pdp::cuda::Device{{.index = world.device()}},
          precision};
      const auto [index, count] = trainer.share();
      const auto x = support::normal(32 / count * width, index);
      const std::vector<std::int32_t> classes(static_cast<std::size_t>(32 / count), 1);
      for (int step = 0; step < steps; ++step) trainer.step(x, classes, 32);
      return 0;
    });
    const stand_in::Traffic after = stand_in::traffic();
    return stand_in::Traffic{after.registered - before.registered, after.other - before.other};
  };
  const std::size_t parameters = start_of(tasks::residual_classifier(2), {.global_batch = 32}).size();
  const auto check_traffic = [&](const strategy::AnyStrategy& strategy, int ranks, auto precision) {
    const stand_in::Traffic few = traffic_of(1, strategy, ranks, precision), more = traffic_of(3, strategy, ranks, precision);
    CHECK(more.registered - few.registered >= 2 * parameters);  // bytes: half of the parameters in 16 bits, in two more steps
    CHECK(more.other - few.other < 2 * 100);                    // bytes of losses
  };
  constexpr pdp::Float32 in_float;
  check_traffic(strategy::DataParallel{}, 2, in_float);
  for (const int stage : {1, 2, 3}) {
    check_traffic(strategy::Zero{.stage = stage, .accumulate = 2}, 3, in_float);
    check_traffic(strategy::Zero{.stage = stage}, 2, pdp::MixedBfloat16{});
  }
  check_traffic(strategy::Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}, 4, in_float);
  check_traffic(strategy::DataParallel{}, 2, pdp::Bfloat16Gradients{});
}

TEST_CASE("Memory of a communicator is freed only when the device has finished with it", "[cuda][nccl]") {
  stand_in::reset();
  const int before = stand_in::live();
  pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    const pdp::cuda::Device device{{.index = world.device()}};
    std::jthread later;
    Trainer trainer{world, strategy::Zero{.stage = 1}, tasks::residual_classifier(2), {.global_batch = 8, .seed = 3}, device};
    auto& stage = trainer.engine().stage();
    later = std::jthread{[hold = std::make_unique<stand_in::Hold>(device.stream())]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
      hold.reset();
    }};
    copy(device, std::span<const float>{stage.own_values(0)}, stage.own_gradients(0).data());
    return 0;
  });
  CHECK(stand_in::live() == before);  // the stand-in also aborts if memory in use is freed
}

TEMPLATE_TEST_CASE("Models on one communicator train as if alone while others are created and destroyed", "[cuda]", comm::Nccl,
                   comm::CudaThread) {
  stand_in::reset();
  stand_in::settings().product_milliseconds = 1;  // so that a call that waits for the wrong stream runs too early
  const auto task = tasks::residual_classifier(2);
  const auto width = static_cast<pdp::Index>(tasks::samples(1).sample_shape().elements());
  std::vector<double> expected;
  {
    auto x = support::normal(4 * width, 0);
    const auto of_other = support::normal(4 * width, 1);
    x.insert(x.end(), of_other.begin(), of_other.end());
    comm::Self self;
    Trainer on_cpu{self, strategy::Single{}, task, {.global_batch = 8, .seed = 3}};
    for (int number = 0; number < 4; ++number) expected.push_back(on_cpu.step(x, std::vector<std::int32_t>{0, 1, 2, 0, 0, 1, 2, 0}).loss);
  }
  const auto found = pdp::testing::ranks<TestType>(2, [&](TestType& world) {
    const auto x = support::normal(4 * width, world.rank());
    const std::vector<std::int32_t> classes{0, 1, 2, 0};
    const auto make = [&](std::uint64_t seed) {
      return std::make_unique<
          Trainer<TestType, strategy::DataParallel, std::remove_const_t<decltype(task)>, pdp::Float32, pdp::cuda::Device>>(
          world, strategy::DataParallel{}, task, pdp::TrainerOptions{.global_batch = 8, .seed = seed},
          pdp::cuda::Device{{.index = world.device()}});
    };
    std::vector<double> losses;
    const auto step = [&](auto& trainer) { return trainer->step(x, classes, 8).loss; };
    auto first = make(3), second = make(4);
    for (int number = 0; number < 2; ++number) {
      losses.push_back(step(first));
      step(second);
    }
    second = make(5);  // the new one is created before the old one is destroyed
    step(second);
    losses.push_back(step(first));
    second.reset();
    losses.push_back(step(first));
    first.reset();
    world.barrier();
    return losses;
  });
  stand_in::reset();
  for (const auto& losses : found) CHECK(support::difference(losses, expected) < 1e-5);
}

TEST_CASE("check_parameters finds differences that are too small for bfloat16", "[cuda][nccl]") {
  stand_in::reset();
  const auto task = tasks::residual_classifier(2);
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    Trainer trainer{world,
                    strategy::DataParallel{},
                    task,
                    {.global_batch = 16, .seed = 3},
                    pdp::cuda::Device{{.index = world.device()}},
                    pdp::MixedBfloat16{}};
    comm::Self self;
    auto parameters = Trainer{self, strategy::Single{}, task, {.global_batch = 16, .seed = 3}}.parameters();
    if (world.rank() == 1) parameters.front().values.front() *= 1.00001f;
    pdp::checkpoint::import_parameters(trainer.engine().stage(), parameters, "memory");  // set_parameters would compare the ranks
    return support::message_of<pdp::ParametersDiffer>([&] { trainer.check_parameters(); }).value_or("nothing was thrown");
  });
  for (const std::string& message : messages) CHECK_THAT(message, Contains("differs between the ranks that hold it"));
}

TEST_CASE("Trainer rejects a Device on another GPU than that of its communicator", "[cuda][nccl][bad input]") {
  stand_in::reset();
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    return support::message_of<pdp::ConfigError>([&] {
             Trainer trainer{
                 world, strategy::Zero{.stage = 3}, tasks::residual_classifier(2), {.global_batch = 16}, pdp::cuda::Device{{.index = 5}}};
           })
        .value_or("nothing was thrown");
  });
  CHECK_THAT(messages[1], Contains("rank 1: the communicator uses GPU 1, but the model is on GPU 5"));
}

TEST_CASE("Gradient reduction over Nccl waits for overlapped weight gradients", "[cuda][nccl]") {
  stand_in::reset();
  stand_in::settings().product_milliseconds = 2;  // long enough that NCCL runs first if it does not wait
  constexpr pdp::nn::Sequential model{pdp::nn::Linear{8, 12, false}, pdp::nn::Tanh{}, pdp::nn::Linear{12, 4, false}};
  const pdp::Task task{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  comm::Self self;
  const courses::Course expected = train(self, strategy::Single{}, task, options);
  const auto found = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    return train(world, strategy::DataParallel{}, task, options, pdp::cuda::Device{{.index = world.device()}});
  });
  for (const courses::Course& course : found) CHECK(support::difference(course.losses, expected.losses) < 1e-5);
  stand_in::reset();
}

TEST_CASE("Trainer::step throws Timeout at the deadline if a peer makes no step", "[cuda][nccl]") {
  stand_in::reset();
  const auto task = tasks::residual_classifier(2);
  const auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
  std::atomic<bool> found = false;
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    Trainer trainer{world, strategy::DataParallel{}, task, {.global_batch = 16, .seed = 3}, pdp::cuda::Device{{.index = world.device()}}};
    if (world.rank() == 1) {
      found.wait(false);
      return std::string{};
    }
    world.deadline(std::chrono::milliseconds{100});
    const auto message = support::message_of<pdp::Timeout>([&] { trainer.step(x, std::vector<std::int32_t>(8), 16); });
    found = true;
    found.notify_all();
    return message.value_or("no timeout");
  });
  CHECK_THAT(messages[0], Contains("rank 0 ") && Contains("deadline"));
}

TEST_CASE("Trainer::finish throws if a peer stops launching a recorded step, and frees GPU memory", "[cuda][nccl]") {
  stand_in::reset();
  const int before = stand_in::live();
  const auto task = tasks::residual_classifier(2);
  const auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
  const bool is_told = GENERATE(false, true);  // whether NCCL reports the error; otherwise the deadline passes
  std::atomic<bool> found = false;
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    Trainer trainer{world, strategy::DataParallel{}, task, {.global_batch = 16, .seed = 3}, pdp::cuda::Device{{.index = world.device()}}};
    for (int step = 0; step < 3; ++step) trainer.step(x, std::vector<std::int32_t>(8), 16);
    if (world.rank() == 1) {
      found.wait(false);
      return std::string{};
    }
    if (!is_told) world.deadline(std::chrono::milliseconds{100});
    trainer.start(x, std::vector<std::int32_t>(8), 16);
    if (is_told) stand_in::settings().error[0] = ncclRemoteError;
    const auto message = support::message_of<pdp::CommunicationError>([&] { trainer.finish(); });
    CHECK(support::message_of<pdp::CommunicationError>([&] { trainer.step(x, std::vector<std::int32_t>(8), 16); }) == message);
    found = true;
    found.notify_all();
    return message.value_or("nothing was thrown");
  });
  stand_in::reset();
  CHECK(stand_in::live() == before);
  CHECK_THAT(messages[0], is_told ? Contains("rank 1 is gone or out of reach, as rank 0 found out in calls in flight")
                                  : Contains("rank 0 has waited for its device until its deadline; another rank"));
}

namespace {

/// Sets a flag and notifies its waiters when it is destroyed.
class Flag {
 public:
  explicit Flag(std::atomic<bool>& flag) : flag_{flag} {}
  Flag(Flag&&) = delete;
  ~Flag() {
    flag_ = true;
    flag_.notify_all();
  }

 private:
  std::atomic<bool>& flag_;
};

}  // namespace

TEST_CASE("A rank that starts steps without waiting throws Timeout if its peer makes none", "[cuda][nccl]") {
  stand_in::reset();
  const auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
  const std::vector<std::int32_t> classes(8);
  // Steps with a known number of rows, steps whose rows are counted first, and a step before a prediction.
  const auto [rows, predicts] = GENERATE(table<pdp::Index, bool>({{16, false}, {0, false}, {16, true}}));
  std::atomic<bool> found = false;
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&, global_rows = rows, steps = predicts ? 1 : 20](comm::Nccl& world) {
    Trainer trainer{world,
                    strategy::DataParallel{},
                    tasks::residual_classifier(2),
                    {.global_batch = 16, .seed = 3},
                    pdp::cuda::Device{{.index = world.device()}}};
    for (int step = 0; step < 3; ++step) trainer.step(x, classes, global_rows);
    if (world.rank() == 1) {
      found.wait(false);
      return std::string{};
    }
    const Flag flag{found};
    world.deadline(std::chrono::milliseconds{100});
    return support::message_of<pdp::Timeout>([&] {
             for (int step = 0; step < steps; ++step) trainer.start(x, classes, global_rows);
             static_cast<void>(trainer.predict(x));
           })
        .value_or("nothing was thrown");
  });
  CHECK_THAT(messages[0],
             Contains(rows == 0 ? "rank 0 waited 100 ms for" : "rank 0 has waited for its device until its deadline; another"));
}

TEMPLATE_TEST_CASE("Trainer::fit on GPU ranks starts steps ahead with equal losses and detects a lost peer", "[cuda][nccl]", comm::Nccl,
                   comm::CudaThread) {
  stand_in::reset();
  const auto fit = [](TestType& world, const strategy::AnyStrategy& strategy, bool watches, int epochs, const auto& on_epoch) {
    Trainer trainer{
        world, strategy, tasks::residual_classifier(2), {.global_batch = 16, .seed = 3}, pdp::cuda::Device{{.index = world.device()}}};
    if (watches)
      trainer.fit(tasks::samples(100), {.epochs = epochs}, on_epoch, [](std::int64_t, const auto&) {});
    else
      trainer.fit(tasks::samples(100), {.epochs = epochs}, on_epoch);
  };
  for (const strategy::AnyStrategy& strategy :
       {strategy::AnyStrategy{strategy::DataParallel{}}, strategy::AnyStrategy{strategy::Pipeline<>{.micro_batches = 3}}}) {
    const auto losses = [&](bool first_watches, bool second_watches) {
      return pdp::testing::ranks<TestType>(2, [&](TestType& world) {
        std::vector<double> found;
        fit(world, strategy, world.rank() == 0 ? first_watches : second_watches, 3,
            [&](const pdp::Epoch& epoch) { found.push_back(epoch.loss); });
        return found;
      });
    };
    const auto expected = losses(true, true);
    CHECK(losses(false, false) == expected);
    CHECK(losses(false, true) == expected);

    std::atomic<bool> found = false;
    int epochs = 0;
    const auto messages = pdp::testing::ranks<TestType>(2, [&](TestType& world) -> std::string {
      if (world.rank() == 1) {
        Trainer trainer{
            world, strategy, tasks::residual_classifier(2), {.global_batch = 16, .seed = 3}, pdp::cuda::Device{{.index = world.device()}}};
        return support::message_of<pdp::ShapeError>([&] {
                 trainer.fit(tasks::samples(100), {.epochs = 3}, [&](const pdp::Epoch&) {
                   found.wait(false);
                   throw pdp::ShapeError{"left"};
                 });
               })
            .value_or("nothing was thrown");
      }
      const Flag flag{found};
      return support::message_of<pdp::Timeout>([&] {
               fit(world, strategy, false, 3, [&](const pdp::Epoch&) {
                 ++epochs;
                 world.deadline(std::chrono::milliseconds{200});
               });
             })
          .value_or("no timeout");
    });
    CHECK(epochs == 1);
    CHECK_THAT(messages[0], Contains("rank 0 ") && Contains("deadline"));
  }
}

TEST_CASE("A Trainer that an exception destroys during a step aborts its calls and frees GPU memory", "[cuda][nccl]") {
  stand_in::reset();
  const int before = stand_in::live();
  const auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
  const auto leave = [&](const strategy::AnyStrategy& strategy, int steps) {
    std::atomic<bool> has_left = false;
    pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
      const auto left = support::message_of<pdp::ShapeError>([&] {
        Trainer trainer{
            world, strategy, tasks::residual_classifier(2), {.global_batch = 16, .seed = 3}, pdp::cuda::Device{{.index = world.device()}}};
        trainer.fit(tasks::samples(100), {.epochs = 0},
                    [](const pdp::Epoch&) {});  // the ranks compare their arguments here, and not in the steps below
        for (int step = 0; step < steps; ++step) trainer.step(x, std::vector<std::int32_t>(8), 16);
        if (world.rank() == 1) return has_left.wait(false);
        trainer.start(x, std::vector<std::int32_t>(8), 16);
        throw pdp::ShapeError{"left"};
      });
      if (world.rank() == 1) return;
      CHECK(left == "left");
      CHECK_THAT(support::message_of<pdp::PeerLost>([&] { world.barrier(); }).value(),
                 Contains("has thrown an error while its calls were in flight"));
      has_left = true;
      has_left.notify_all();
    });
  };
  for (const int steps : {0, 3}) {
    leave(strategy::DataParallel{}, steps);
    leave(strategy::Hybrid<>{.mesh = {.data = 2}}, steps);
  }
  stand_in::reset();
  CHECK(stand_in::live() == before);
}

TEST_CASE("Ranks that cannot record a step throw DeviceError, and PeerLost from then on", "[cuda][nccl][bad input]") {
  stand_in::reset();
  stand_in::settings().graphs_fit = false;
  const int before = stand_in::live();
  const auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    Trainer trainer{
        world, strategy::DataParallel{}, tasks::residual_classifier(2), {.global_batch = 16}, pdp::cuda::Device{{.index = world.device()}}};
    const auto step = [&] { trainer.step(x, std::vector<std::int32_t>(8), 16); };
    step();
    const auto first = support::message_of<pdp::DeviceError>(step), second = support::message_of<pdp::PeerLost>(step);
    return first.value_or("no error") + "; " + second.value_or("no error");
  });
  for (const std::string& message : messages)
    CHECK_THAT(message, Contains("cudaGraphInstantiate failed") && Contains("failed in a step that all ranks record"));
  stand_in::reset();
  CHECK(stand_in::live() == before);
}

TEST_CASE("launch::run starts Nccl ranks as threads and reports missing GPUs and failed ranks", "[cuda][nccl][launch]") {
  stand_in::reset();
  std::atomic<int> rows = 0;
  const auto train = [&](comm::Nccl& world) {
    Trainer trainer{world,
                    strategy::DataParallel{},
                    tasks::residual_classifier(2),
                    {.global_batch = 15, .seed = 3},
                    pdp::cuda::Device{{.index = world.device()}}};
    const auto x = support::normal(5 * tasks::samples(1).sample_shape().elements(), world.rank());
    rows += static_cast<int>(trainer.step(x, std::vector<std::int32_t>(5)).rows);
  };
  CHECK(pdp::launch::run<comm::Nccl>(pdp::launch::Options{.threads = 3, .comm = "thread"}, train) == 2);
  CHECK(pdp::launch::run<comm::Nccl>(pdp::launch::Options{.threads = 3, .comm = "nccl"}, train) ==
        0);  // ends with a barrier after the devices are destroyed
  CHECK(rows == 3 * 15);
  stand_in::settings().devices = 2;
  CHECK(pdp::launch::run<comm::Nccl>(pdp::launch::Options{.threads = 3}, train) == 1);
  CHECK(pdp::launch::run<comm::Nccl>(pdp::launch::Options{.threads = 2}, [](comm::Nccl& world) {
          world.deadline(std::chrono::milliseconds{100});  // NCCL does not report a failed rank
          if (world.rank() == 1) throw pdp::ShapeError{"no"};
        }) == 1);
  stand_in::reset();
}

}  // namespace ranks_test
