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

#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "parallel/tasks.hpp"
#include "stand_in.hpp"
#include "support.hpp"

// Models on several GPUs that NCCL connects. On what stands in for both.

namespace comm = pdp::comm;
namespace parallel = pdp::parallel;
using pdp::Trainer;

namespace {

struct Course {
  std::vector<double> losses, correct;
  std::vector<float> outputs, parameters;
};

template <class C, class S, class TaskType, class... How>
Course train(C& world, const S& strategy, const TaskType& task, const pdp::TrainerOptions& options, const How&... how) {
  Trainer trainer{world, strategy, task, options, how...};
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

template <class S, class... How>
void check(const S& strategy, int ranks, const pdp::TrainerOptions& options, double tolerance = 1e-5, const How&... how) {
  const auto task = tasks::residual_classifier(3);
  comm::Self self;
  const Course expected = train(self, parallel::Single{}, task, options);
  const auto found = pdp::testing::ranks<comm::Nccl>(ranks, [&](comm::Nccl& world) {
    return train(world, strategy, task, options, pdp::cuda::Device{{.index = world.device()}}, how...);
  });
  INFO(ranks << " ranks");
  for (const Course& course : found) {
    CHECK(support::difference(course.losses, expected.losses) < tolerance);
    CHECK(support::difference(course.outputs, expected.outputs) < 100 * tolerance);
  }
  CHECK(support::difference(found.front().parameters, expected.parameters) < 100 * tolerance);
}

}  // namespace

TEST_CASE("ranks with a GPU each learn what one process on a CPU learns, by every strategy", "[cuda][nccl][equivalence]") {
  stand_in::reset();
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  for (const int ranks : {2, 3}) {
    check(parallel::DataParallel{}, ranks, options);
    check(parallel::DataParallel{.accumulate = 2}, ranks, {.global_batch = 31, .seed = 3, .clip_norm = 0.5});
    for (const int stage : {1, 2, 3}) check(parallel::Zero{.stage = stage, .accumulate = 2}, ranks, options);
    check(parallel::Pipeline<>{.micro_batches = 3}, ranks, options);
    check(parallel::Pipeline<parallel::ZeroBubble>{.micro_batches = 4, .join_weights = 2}, ranks, options);
  }
  check(parallel::TensorParallel{}, 2, options);
  check(parallel::Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}, 4, options);
}

TEST_CASE("gradients travel rounded between GPUs", "[cuda][nccl]") {
  stand_in::reset();
  check(parallel::DataParallel{}, 2, {.global_batch = 32, .seed = 3}, 2e-2, pdp::Bfloat16Gradients{});
}

TEST_CASE("ranks on GPUs count the rows of a step together, and all say whose gradient is not finite", "[cuda][nccl]") {
  stand_in::reset();
  const auto task = tasks::residual_classifier(2);
  const auto width = static_cast<pdp::Index>(tasks::samples(1).sample_shape().elements());
  const auto messages = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    Trainer trainer{world,
                    parallel::DataParallel{},
                    task,
                    {.global_batch = 16, .seed = 3, .non_finite = parallel::NonFinite::stop},
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
  const Course expected = train(self, parallel::Single{}, task, options);
  const auto found = pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
    return train(world, parallel::DataParallel{}, task, options, pdp::cuda::Device{{.index = world.device()}});
  });
  for (const Course& course : found) CHECK(support::difference(course.losses, expected.losses) < 1e-5);
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
