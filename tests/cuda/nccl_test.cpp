#include <pdp/comm/nccl.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <iostream>
#include <vector>

#include "catch.hpp"
#include "course.hpp"
#include "gpu.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace nccl_test {

// Trains models on several GPUs over NCCL: on the stand-ins for CUDA and NCCL, or on the GPUs of this machine.

namespace comm = pdp::comm;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using courses::check, courses::Course, courses::start_of, courses::train;
using pdp::Trainer;

namespace {

/// Returns whether NCCL can run so many ranks on the GPUs of this machine. If not, prints which ranks are left out.
bool have_gpus(int ranks) {
  if (!gpu::device()) return false;
  const int gpus = pdp::cuda::devices();
  if (gpus >= ranks || comm::Nccl::shares_gpus()) return true;
  std::cout << "left out: " << ranks << " ranks over NCCL need as many GPUs, but there are " << gpus << '\n';
  return false;
}

}  // namespace

TEST_CASE("Training over Nccl matches one process on a CPU for every strategy", "[cuda][nccl][equivalence]") {
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  for (const int ranks : {1, 2, 3}) {
    if (!have_gpus(ranks)) return;
    check<comm::Nccl>(strategy::DataParallel{}, ranks, options);
    check<comm::Nccl>(strategy::DataParallel{.accumulate = 2}, ranks, {.global_batch = 31, .seed = 3, .clip_norm = 0.5});
    for (const int stage : {1, 2, 3}) check<comm::Nccl>(strategy::Zero{.stage = stage, .accumulate = 2}, ranks, options);
    check<comm::Nccl>(strategy::Pipeline<>{.micro_batches = 3}, ranks, options);
    if (ranks == 1) continue;
    check<comm::Nccl>(strategy::Pipeline<plan::ZeroBubble>{.micro_batches = 4, .join_weights = 2}, ranks, options);
    check<comm::Nccl>(strategy::Pipeline<plan::GPipe>{.micro_batches = 5}, ranks, options);
    if (ranks == 2) check<comm::Nccl>(strategy::Pipeline<plan::Interleaved>{.micro_batches = 6}, ranks, options);
  }
  check<comm::Nccl>(strategy::TensorParallel{}, 2, options);
  if (!have_gpus(4)) return;
  check<comm::Nccl>(strategy::Pipeline<>{.micro_batches = 7}, 4, options);
  check<comm::Nccl>(strategy::Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}, 4, options);
}

TEST_CASE("CUDA graphs change training over Nccl by rounding errors only", "[cuda][nccl]") {
  if (!have_gpus(2)) return;
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  const auto found = [&](bool graphs) {
    return pdp::testing::ranks<comm::Nccl>(2, [&](comm::Nccl& world) {
      return train(world, strategy::DataParallel{}, tasks::residual_classifier(2), options,
                   pdp::cuda::Device{{.index = world.device(), .graphs = graphs}});
    });
  };
  const auto recorded = found(true), plain = found(false);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(support::difference(recorded[rank].losses, plain[rank].losses) < 1e-5);
    CHECK(support::difference(recorded[rank].outputs, plain[rank].outputs) < 1e-4);
  }
}

TEST_CASE("Training over Nccl with Bfloat16Gradients has losses within 0.02 of those on a CPU", "[cuda][nccl]") {
  if (!have_gpus(2)) return;
  check<comm::Nccl>(strategy::DataParallel{}, 2, {.global_batch = 32, .seed = 3}, 2e-2, pdp::Bfloat16Gradients{});
}

TEST_CASE("Training in 16 bits over Nccl matches one rank in 16 bits for every strategy", "[cuda][nccl]") {
  const auto task = tasks::residual_classifier(3);
  const auto check_mixed = [&](const strategy::AnyStrategy& strategy, int ranks, double tolerance, auto precision) {
    if (!have_gpus(ranks)) return;
    const pdp::TrainerOptions options{.global_batch = 32, .seed = 3, .clip_norm = 0.5, .loss_scaling = pdp::LossScaling{.initial = 1024}};
    comm::Self self;
    const Course in_float = train(self, strategy::Single{}, task, options),
                 expected = train(self, strategy::Single{}, task, options, pdp::cuda::Device{}, precision);
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
  check_mixed(strategy::DataParallel{.accumulate = 2}, 3, 2e-3, bfloat16);
  for (const int stage : {1, 2, 3}) check_mixed(strategy::Zero{.stage = stage, .accumulate = 2}, 2, 2e-3, bfloat16);
  check_mixed(strategy::Pipeline<>{.micro_batches = 3}, 3, 2e-3, bfloat16);
  check_mixed(strategy::TensorParallel{}, 2, 2e-2, bfloat16);  // its sums within layers add rounded terms
  check_mixed(strategy::Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}, 4, 2e-3, bfloat16);
  check_mixed(strategy::DataParallel{}, 2, 2e-2, pdp::Precision<pdp::BFloat16, float, pdp::BFloat16>{});
  check_mixed(strategy::Zero{.stage = 3}, 2, 1e-3, pdp::MixedFloat16{});
}

TEST_CASE("Ranks over Nccl add up the rows of a step, and all name the rank of a NaN gradient", "[cuda][nccl]") {
  if (!have_gpus(2)) return;
  courses::check_rows_and_culprit<comm::Nccl>();
}

}  // namespace nccl_test
