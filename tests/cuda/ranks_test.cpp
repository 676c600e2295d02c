#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/launch/run.hpp>
#include <pdp/parallel/data_parallel.hpp>
#include <pdp/parallel/hybrid.hpp>
#include <pdp/parallel/pipeline.hpp>
#include <pdp/parallel/single.hpp>
#include <pdp/parallel/tensor_parallel.hpp>
#include <pdp/parallel/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "course.hpp"
#include "parallel/tasks.hpp"
#include "stand_in.hpp"
#include "support.hpp"

// Models on several GPUs that NCCL connects. On what stands in for both.

namespace comm = pdp::comm;
namespace parallel = pdp::parallel;
using courses::check, courses::Course, courses::train;
using pdp::Trainer;

namespace {

/// The parameters that training begins with.
template <class TaskType>
std::vector<float> start_of(const TaskType& task, const pdp::TrainerOptions& options) {
  comm::Self self;
  std::vector<float> parameters;
  for (const auto& tensor : Trainer{self, parallel::Single{}, task, options}.parameters())
    parameters.insert(parameters.end(), tensor.values.begin(), tensor.values.end());
  return parameters;
}

}  // namespace

TEST_CASE("ranks with a GPU each learn what one process on a CPU learns, by every strategy", "[cuda][nccl][equivalence]") {
  stand_in::reset();
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  for (const int ranks : {1, 2, 3}) {
    check<comm::Nccl>(parallel::DataParallel{}, ranks, options);
    check<comm::Nccl>(parallel::DataParallel{.accumulate = 2}, ranks, {.global_batch = 31, .seed = 3, .clip_norm = 0.5});
    for (const int stage : {1, 2, 3}) check<comm::Nccl>(parallel::Zero{.stage = stage, .accumulate = 2}, ranks, options);
    check<comm::Nccl>(parallel::Pipeline<>{.micro_batches = 3}, ranks, options);
    if (ranks > 1) check<comm::Nccl>(parallel::Pipeline<parallel::ZeroBubble>{.micro_batches = 4, .join_weights = 2}, ranks, options);
  }
  check<comm::Nccl>(parallel::TensorParallel{}, 2, options);
  check<comm::Nccl>(parallel::Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}, 4, options);
}

TEST_CASE("gradients travel rounded between GPUs", "[cuda][nccl]") {
  stand_in::reset();
  check<comm::Nccl>(parallel::DataParallel{}, 2, {.global_batch = 32, .seed = 3}, 2e-2, pdp::Bfloat16Gradients{});
}

TEST_CASE("ranks whose models compute in 16 bits learn as one does, by every strategy", "[cuda][nccl]") {
  stand_in::reset();
  const auto task = tasks::residual_classifier(3);
  const auto check_mixed = [&](const auto& strategy, int ranks, double tolerance, auto precision) {
    const pdp::TrainerOptions options{.global_batch = 32, .seed = 3, .clip_norm = 0.5, .loss_scaling = pdp::LossScaling{.initial = 1024}};
    comm::Self self;
    const Course in_float = train(self, parallel::Single{}, task, options),
                 expected = train(self, parallel::Single{}, task, options, pdp::cuda::Device{}, precision);
    const auto found = pdp::testing::ranks<comm::Nccl>(ranks, [&](comm::Nccl& world) {
      return train(world, strategy, task, options, pdp::cuda::Device{{.index = world.device()}}, precision);
    });
    INFO(ranks << " ranks");
    for (const Course& course : found) {
      CHECK(support::difference(course.losses, expected.losses) < tolerance);
      CHECK(support::difference(course.losses, in_float.losses) < 0.03);
      CHECK(support::difference(course.outputs, expected.outputs) < 10 * tolerance);
    }
    CHECK(support::difference(found.front().parameters, expected.parameters) < 4 * tolerance);
    CHECK(support::difference(found.front().parameters, start_of(task, options)) > 0.02);
  };
  constexpr pdp::MixedBfloat16 bfloat16;
  check_mixed(parallel::DataParallel{.accumulate = 2}, 3, 2e-3, bfloat16);
  for (const int stage : {1, 2, 3}) check_mixed(parallel::Zero{.stage = stage, .accumulate = 2}, 2, 2e-3, bfloat16);
  check_mixed(parallel::Pipeline<>{.micro_batches = 3}, 3, 2e-3, bfloat16);
  check_mixed(parallel::TensorParallel{}, 2, 2e-2, bfloat16);  // its sums within layers are of terms that are rounded
  check_mixed(parallel::Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}, 4, 2e-3, bfloat16);
  check_mixed(parallel::DataParallel{}, 2, 2e-2, pdp::Precision<pdp::BFloat16, float, pdp::BFloat16>{});
  check_mixed(parallel::Zero{.stage = 3}, 2, 1e-3, pdp::MixedFloat16{});
}

TEMPLATE_TEST_CASE("models that share a world of GPUs learn as each does alone, while others are made and go", "[cuda]", comm::Nccl,
                   comm::CudaThread) {
  stand_in::reset();
  stand_in::settings().product_milliseconds = 1;  // so that a call that comes after the wrong stream comes too early
  const auto task = tasks::residual_classifier(2);
  const auto width = static_cast<pdp::Index>(tasks::samples(1).sample_shape().elements());
  std::vector<double> expected;
  {
    auto x = support::normal(4 * width, 0);
    const auto of_other = support::normal(4 * width, 1);
    x.insert(x.end(), of_other.begin(), of_other.end());
    comm::Self self;
    Trainer on_cpu{self, parallel::Single{}, task, {.global_batch = 8, .seed = 3}};
    for (int number = 0; number < 4; ++number) expected.push_back(on_cpu.step(x, std::vector<std::int32_t>{0, 1, 2, 0, 0, 1, 2, 0}).loss);
  }
  const auto found = pdp::testing::ranks<TestType>(2, [&](TestType& world) {
    const auto x = support::normal(4 * width, world.rank());
    const std::vector<std::int32_t> classes{0, 1, 2, 0};
    const auto make = [&](std::uint64_t seed) {
      return std::make_unique<
          Trainer<TestType, parallel::DataParallel, std::remove_const_t<decltype(task)>, pdp::Float32, pdp::cuda::Device>>(
          world, parallel::DataParallel{}, task, pdp::TrainerOptions{.global_batch = 8, .seed = seed},
          pdp::cuda::Device{{.index = world.device()}});
    };
    std::vector<double> losses;
    const auto step = [&](auto& trainer) { return trainer->step(x, classes, 8).loss; };
    auto first = make(3), second = make(4);
    for (int number = 0; number < 2; ++number) {
      losses.push_back(step(first));
      step(second);
    }
    second = make(5);  // before the one that it takes the place of is gone
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

TEST_CASE("parameters that differ between ranks by less than 16 bits can tell are found", "[cuda][nccl]") {
  stand_in::reset();
  const auto task = tasks::residual_classifier(2);
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    Trainer trainer{world,
                    parallel::DataParallel{},
                    task,
                    {.global_batch = 16, .seed = 3},
                    pdp::cuda::Device{{.index = world.device()}},
                    pdp::MixedBfloat16{}};
    comm::Self self;
    auto parameters = Trainer{self, parallel::Single{}, task, {.global_batch = 16, .seed = 3}}.parameters();
    if (world.rank() == 1) parameters.front().values.front() *= 1.00001f;
    trainer.set_parameters(parameters, "memory");
    return support::message_of<pdp::ParametersDiffer>([&] { trainer.check_parameters(); }).value_or("nothing was thrown");
  });
  for (const std::string& message : messages) CHECK_THAT(message, Contains("is not the same on all ranks that hold it"));
}

TEST_CASE("ranks on GPUs count the rows of a step together, and all say whose gradient is not finite", "[cuda][nccl]") {
  stand_in::reset();
  courses::check_rows_and_culprit<comm::Nccl>();
}

TEST_CASE("a model on another GPU than its communicator's is refused", "[cuda][nccl][bad input]") {
  stand_in::reset();
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    return support::message_of<pdp::ConfigError>([&] {
             Trainer trainer{
                 world, parallel::DataParallel{}, tasks::residual_classifier(2), {.global_batch = 16}, pdp::cuda::Device{{.index = 5}}};
           })
        .value_or("nothing was thrown");
  });
  CHECK_THAT(messages[1], Contains("rank 1: the communicator uses GPU 1, but the model is on GPU 5"));
}

TEST_CASE("a product that waits for what comes after it is there when its gradient is reduced", "[cuda][nccl]") {
  stand_in::reset();
  stand_in::settings().product_milliseconds = 2;  // long enough for NCCL to go before, if it does not wait
  constexpr pdp::nn::Sequential model{pdp::nn::Linear{8, 12, false}, pdp::nn::Tanh{}, pdp::nn::Linear{12, 4, false}};
  const pdp::Task task{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  comm::Self self;
  const courses::Course expected = train(self, parallel::Single{}, task, options);
  const auto found = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    return train(world, parallel::DataParallel{}, task, options, pdp::cuda::Device{{.index = world.device()}});
  });
  for (const courses::Course& course : found) CHECK(support::difference(course.losses, expected.losses) < 1e-5);
  stand_in::reset();
}

TEST_CASE("a rank whose peer makes no step finds out by its deadline", "[cuda][nccl]") {
  stand_in::reset();
  const auto task = tasks::residual_classifier(2);
  const auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
  std::atomic<bool> found = false;
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    Trainer trainer{world, parallel::DataParallel{}, task, {.global_batch = 16, .seed = 3}, pdp::cuda::Device{{.index = world.device()}}};
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

TEST_CASE("ranks on GPUs may be threads of one process", "[cuda][nccl][launch]") {
  stand_in::reset();
  std::atomic<int> rows = 0;
  const auto train = [&](comm::Nccl& world) {
    Trainer trainer{world,
                    parallel::DataParallel{},
                    tasks::residual_classifier(2),
                    {.global_batch = 15, .seed = 3},
                    pdp::cuda::Device{{.index = world.device()}}};
    const auto x = support::normal(5 * tasks::samples(1).sample_shape().elements(), world.rank());
    rows += static_cast<int>(trainer.step(x, std::vector<std::int32_t>(5)).rows);
  };
  CHECK(pdp::launch::run<comm::Nccl>(pdp::launch::Options{.threads = 3}, train) == 0);  // with a barrier, when the devices are gone
  CHECK(rows == 3 * 15);
  stand_in::settings().devices = 2;
  CHECK(pdp::launch::run<comm::Nccl>(pdp::launch::Options{.threads = 3}, train) == 1);
  CHECK(pdp::launch::run<comm::Nccl>(pdp::launch::Options{.threads = 2}, [](comm::Nccl& world) {
          world.deadline(std::chrono::milliseconds{100});  // NCCL tells nobody of a rank that has failed
          if (world.rank() == 1) throw pdp::ShapeError{"no"};
        }) == 1);
  stand_in::reset();
}
