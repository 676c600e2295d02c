#include "engine/allocations.hpp"

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/number_view.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/all_layers.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/train/trainer.hpp>

#include <new>

#include "catch.hpp"
#include "erased.hpp"
#include "strategy/tasks.hpp"

namespace comm = pdp::comm;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;

namespace {

// As wide as a classifier of MNIST: products of large matrices may allocate even if those of small ones do not.
const pdp::nn::Sequential wide_model{pdp::nn::Linear{784, 64},
                                     pdp::nn::Repeat{1, pdp::nn::Residual{pdp::nn::Sequential{pdp::nn::Linear{64, 64}, pdp::nn::Relu{}}}},
                                     pdp::nn::Linear{64, 10}};
const pdp::Task wide{wide_model, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};
const pdp::Task convolutional{
    pdp::nn::Sequential{
        pdp::nn::Conv2d{1, 4, 5, {.stride = 2}}, pdp::nn::GroupNorm{2, 4}, pdp::nn::MaxPool2d{2},
        pdp::nn::Sum{pdp::nn::Conv2d{4, 8, 3, {.padding = 1, .groups = 2}}, pdp::nn::Conv2d{4, 8, 1}},
        pdp::nn::Residual{pdp::nn::Sequential{pdp::nn::Conv2d{8, 4, 1},
                                              pdp::nn::Residual{pdp::nn::Sequential{pdp::nn::Conv2d{4, 4, 1}, pdp::nn::Conv2d{4, 4, 1}}},
                                              pdp::nn::Conv2d{4, 8, 1}}},
        pdp::nn::Flatten{}, pdp::nn::Linear{8 * 6 * 6, 10}},
    pdp::loss::CrossEntropy{}, pdp::optim::AdamW{}};
const pdp::Task grouped{wide_model, pdp::loss::CrossEntropy{},
                        pdp::optim::Grouped{pdp::optim::AdamW{}, pdp::optim::no_decay_on_biases_and_norms}};

/// Returns the number of allocations of all ranks in steps 4 to 23 of a fit (counted from 0), those of the loader's thread and of messages
/// included. Step 3 is the first with fewer rows, for which oneDNN creates other kernels. In step 8 the last rank is late by `late`.
template <class Strategy, class P, class TaskType>
long allocations_of(comm::Any& world, const Strategy& strategy, const plan::GradientPolicy& policy, P precision,
                    std::chrono::milliseconds late, const TaskType& task) {
  const pdp::data::InMemory<std::int32_t> samples{pdp::Shape{784}, pdp::testing::normal(1000 * 784, 1), std::vector<std::int32_t>(1000, 3)};
  const pdp::TrainerOptions options{
      .global_batch = 256, .seed = 1, .input = pdp::Shape{1, 28, 28}, .clip_norm = policy.clip_norm, .non_finite = policy.non_finite};
  pdp::Trainer trainer{world, strategy, task, options, precision};
  long first = 0, last = 0;
  const auto on_step = [&](std::int64_t step, const auto&) {
    if (step == 8 && world.rank() == world.size() - 1) std::this_thread::sleep_for(late);
    if (step > 3 && step < 22) return;
    world.barrier();
    (step <= 3 ? first : last) = allocations::count;
    world.barrier();
  };
  trainer.fit(
      samples, {.epochs = 6}, [](const pdp::Epoch&) {}, on_step);
  return last - first;
}

template <class Comm, class Strategy, class P = pdp::Float32, class TaskType = decltype(wide)>
long allocations_in_a_fit(int ranks, const Strategy& strategy,
                          const plan::GradientPolicy& policy = {.non_finite = plan::NonFinite::stop_on_loss}, P precision = {},
                          std::chrono::milliseconds late = {}, const TaskType& task = wide) {
  const auto counts = erased::ranks<Comm>(
      ranks, [&](comm::Any& world) { return allocations_of(world, erased::strategy(strategy), policy, precision, late, task); });
  return counts.front();
}

/// Returns the number of allocations of steps with numbers of the other type than P's, after the first of them, which has fewer rows.
template <class P>
long allocations_with_conversions(P precision) {
  using Other = typename pdp::NumberView<typename P::compute>::Other;
  constexpr std::size_t rows = 32;
  const std::vector<Other> x = pdp::testing::normal<Other>(rows * 784, 1), y = pdp::testing::normal<Other>(rows * 10, 2);
  const std::vector<typename P::compute> same_x(x.begin(), x.end()), same_y(y.begin(), y.end());
  const pdp::Task task{wide_model, pdp::loss::MeanSquaredError{}, pdp::optim::Adam{}};
  comm::Self world;
  pdp::Trainer trainer{world, strategy::Single{}, task, {.global_batch = rows}, precision};
  for (int step = 0; step < 4; ++step) trainer.step(same_x, same_y);
  trainer.step(std::span{x}.first(5 * 784), std::span{y}.first(5 * 10));
  const long before = allocations::count;
  for (int step = 0; step < 4; ++step) trainer.step(x, y);
  return allocations::count - before;
}

template <class Comm, class Strategy>
long allocations_with_a_late_rank(int ranks, const Strategy& strategy) {
  return allocations_in_a_fit<Comm>(ranks, strategy, {}, pdp::Float32{}, std::chrono::milliseconds{1500});
}

}  // namespace

TEST_CASE("allocations::count counts operator new, malloc and realloc", "[parallel][allocation]") {
  if (!allocations::are_counted) return;
  const auto counted = [](auto&& allocate) {
    const long before = allocations::count;
    allocate();
    return allocations::count - before;
  };
  CHECK(counted([] { ::operator delete(::operator new(100)); }) == 1);
  CHECK(counted([] { ::operator delete[](::operator new[](100)); }) == 1);
  CHECK(counted([] { ::operator delete(::operator new(100, std::nothrow)); }) == 1);
  CHECK(counted([] { pdp::Buffer<float>{100}; }) == 1);
  void* memory = nullptr;
  CHECK(counted([&] { memory = std::malloc(10); }) == 1);
  CHECK(counted([&] { memory = std::realloc(memory, 100'000); }) == 1);
  std::free(memory);
  CHECK(counted([] {}) == 0);
}

TEST_CASE("Trainer::step allocates memory for conversions in the first step only", "[parallel][allocation]") {
  if (!allocations::are_counted) return;
  CHECK(allocations_with_conversions(pdp::Float32{}) == 0);
  CHECK(allocations_with_conversions(pdp::Float64{}) == 0);
}

TEST_CASE("Trainer::fit allocates nothing for the runs of parameter groups", "[parallel][allocation]") {
  if (!allocations::are_counted) return;
  const auto allocations_with_groups = [](const auto& strategy) {
    return allocations_in_a_fit<comm::Shm>(2, strategy, {.clip_norm = 0.01}, pdp::Float32{}, {}, grouped) +
           allocations_in_a_fit<comm::Shm>(2, strategy, {}, pdp::Float32{}, {}, grouped);
  };
  CHECK(allocations_with_groups(strategy::DataParallel{}) == 0);
  CHECK(allocations_with_groups(strategy::Zero{.stage = 3}) == 0);
}

TEST_CASE("Trainer::fit allocates nothing for convolutions, pooling and branches", "[parallel][allocation]") {
  if (!allocations::are_counted) return;
  const auto allocations_with_convolutions = [](const auto& strategy, int ranks, auto precision) {
    return allocations_in_a_fit<comm::Thread>(ranks, strategy, {}, precision, {}, convolutional);
  };
  CHECK(allocations_with_convolutions(strategy::DataParallel{.accumulate = 2}, 2, pdp::Float32{}) == 0);
  CHECK(allocations_with_convolutions(strategy::Zero{.stage = 3}, 2, pdp::Float64{}) == 0);
  CHECK(allocations_with_convolutions(strategy::TensorParallel{.accumulate = 2}, 2, pdp::Float32{}) == 0);
  CHECK(allocations_with_convolutions(strategy::Zero{.stage = 2}, 2, pdp::MixedBfloat16{}) == 0);
}

TEST_CASE("Trainer::fit allocates nothing after the first four steps", "[parallel][allocation]") {
  if (!allocations::are_counted) return;
  CHECK(allocations_in_a_fit<comm::Self>(1, strategy::Single{}) == 0);
  CHECK(allocations_in_a_fit<comm::Self>(1, strategy::Single{.accumulate = 3}) == 0);
  CHECK(allocations_in_a_fit<comm::Thread>(2, strategy::DataParallel{}, {}, pdp::Float64{}) == 0);
  for (const int ranks : {2, 3}) {
    CHECK(allocations_in_a_fit<comm::Thread>(ranks, strategy::DataParallel{}) == 0);
    CHECK(allocations_in_a_fit<comm::Shm>(ranks, strategy::DataParallel{}) == 0);
    CHECK(allocations_in_a_fit<comm::Tcp>(ranks, strategy::DataParallel{}) == 0);
  }
  CHECK(allocations_in_a_fit<comm::Thread>(4, strategy::DataParallel{.accumulate = 2, .unit_elements = 1}) == 0);
  CHECK(allocations_in_a_fit<comm::Shm>(2, strategy::Pipeline<>{.micro_batches = 4, .join_weights = 3}) == 0);
  for (const int stage : {1, 2, 3}) CHECK(allocations_in_a_fit<comm::Shm>(2, strategy::Zero{.stage = stage, .accumulate = 2}) == 0);
  CHECK(allocations_in_a_fit<comm::Shm>(2, strategy::Zero{.stage = 3}, {.clip_norm = 0.01, .non_finite = plan::NonFinite::stop}) == 0);
  CHECK(allocations_in_a_fit<comm::Shm>(2, strategy::Pipeline<plan::ZeroBubble>{.micro_batches = 4}) == 0);
  CHECK(allocations_in_a_fit<comm::Thread>(2, strategy::Pipeline<plan::GPipe>{.micro_batches = 4}) == 0);
  CHECK(allocations_in_a_fit<comm::Shm>(2, strategy::TensorParallel{.accumulate = 2}) == 0);
  CHECK(allocations_in_a_fit<comm::Tcp>(2, strategy::TensorParallel{}) == 0);
  CHECK(allocations_in_a_fit<comm::Thread>(4, strategy::Hybrid<>{.mesh = {2, 1, 2}, .micro_batches = 2}) == 0);
  CHECK(allocations_in_a_fit<comm::Thread>(4, strategy::Hybrid<>{.mesh = {1, 2, 2}, .micro_batches = 2}) == 0);
  CHECK(allocations_in_a_fit<comm::Shm>(2, strategy::DataParallel{}, {}, pdp::Bfloat16Gradients{}) == 0);
  CHECK(allocations_in_a_fit<comm::Shm>(2, strategy::Zero{.stage = 2, .accumulate = 2}, {}, pdp::Bfloat16Gradients{}) == 0);
}

// A rank that waits for long sends heartbeats and probes, and tells the others in which collective it waits.
TEST_CASE("Trainer::fit allocates nothing if a rank is late by 1.5 s", "[parallel][allocation]") {
  if (!allocations::are_counted) return;
  CHECK(allocations_with_a_late_rank<comm::Thread>(2, strategy::DataParallel{}) == 0);
  CHECK(allocations_with_a_late_rank<comm::Shm>(3, strategy::DataParallel{}) == 0);
  CHECK(allocations_with_a_late_rank<comm::Tcp>(3, strategy::DataParallel{}) == 0);
  CHECK(allocations_with_a_late_rank<comm::Tcp>(2, strategy::TensorParallel{}) == 0);
}
