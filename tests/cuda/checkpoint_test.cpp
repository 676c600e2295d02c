#include <pdp/comm/nccl.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "gpu.hpp"
#include "strategy/tasks.hpp"

namespace gpu_checkpoint_test {

// Saves and loads the state of trainings on GPUs: on the stand-ins for CUDA and NCCL, or on the GPUs of this machine.

namespace comm = pdp::comm;
namespace fs = std::filesystem;
namespace strategy = pdp::strategy;

namespace {

struct Course {
  std::vector<double> losses, scales;
  std::vector<pdp::checkpoint::Tensor> parameters;
};

/// Trains for some epochs of 4 steps, from a checkpoint if `from` is given. Writes one to `to` in the background after step 6, if that is
/// given.
template <class C, class P>
Course train(C& world, const strategy::AnyStrategy& strategy, int epochs, const fs::path& from, const fs::path& to, P precision) {
  int gpu = 0;
  if constexpr (requires { world.device(); }) gpu = world.device();
  pdp::Trainer trainer{world, strategy, tasks::classifier, {.global_batch = 16, .seed = 3}, pdp::cuda::Device{{.index = gpu}}, precision};
  Course course;
  if (!from.empty()) trainer.load(from);
  pdp::CheckpointOptions checkpoint;
  if (!to.empty()) checkpoint = {.directory = to, .every_steps = 6, .asynchronous = true, .keep = 0};
  trainer.fit(
      tasks::samples(60), {.epochs = epochs, .checkpoint = checkpoint}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) {
        course.losses.push_back(totals.mean_loss());
        course.scales.push_back(totals.loss_scale);
      });
  course.parameters = trainer.parameters();
  return course;
}

void check_continues(const Course& resumed, const Course& uninterrupted) {
  const auto rest = [](const std::vector<double>& all) { return std::vector<double>{all.begin() + 6, all.end()}; };
  CHECK(resumed.losses == rest(uninterrupted.losses));
  CHECK(resumed.scales == rest(uninterrupted.scales));
  REQUIRE(resumed.parameters.size() == uninterrupted.parameters.size());
  for (std::size_t t = 0; t < resumed.parameters.size(); ++t) CHECK(resumed.parameters[t].values == uninterrupted.parameters[t].values);
}

template <class P>
void check_one(P precision) {
  const files::TemporaryFolder folder;
  comm::Self self;
  const Course uninterrupted = train(self, strategy::Single{}, 3, {}, folder / "run", precision);
  check_continues(train(self, strategy::Single{}, 2, folder / "run/step-000006", {}, precision), uninterrupted);
}

template <class P>
void check_ranks(P precision, double tolerance) {
  const files::TemporaryFolder folder;
  const auto train_ranks = [&](const strategy::AnyStrategy& strategy, int ranks, int epochs, const fs::path& from, const fs::path& to) {
    return pdp::testing::ranks<comm::Nccl>(ranks, [&](comm::Nccl& world) { return train(world, strategy, epochs, from, to, precision); })
        .front();
  };
  const strategy::Zero zero{.stage = 3};
  const Course uninterrupted = train_ranks(zero, 2, 3, {}, folder / "run");
  check_continues(train_ranks(zero, 2, 2, folder / "run/step-000006", {}), uninterrupted);
  const Course other = train_ranks(strategy::DataParallel{}, 2, 2, folder / "run/step-000006", {});
  for (std::size_t step = 0; step < other.losses.size(); ++step)
    CHECK_THAT(other.losses[step], WithinRel(uninterrupted.losses[6 + step], tolerance));
}

}  // namespace

TEST_CASE("Training on a GPU continues to the bit from a checkpoint that was written in the background", "[cuda][checkpoint]") {
  if (!gpu::device()) return;
  check_one(pdp::Float32{});
  check_one(pdp::MixedBfloat16{});
  check_one(pdp::MixedFloat16{});  // the loss scale is part of the state
}

TEST_CASE("Training over Nccl continues to the bit from a checkpoint, and under another strategy", "[cuda][nccl][checkpoint]") {
  if (!gpu::device()) return;
  if (pdp::cuda::devices() < 2 && !comm::Nccl::shares_gpus()) return;
  check_ranks(pdp::Float32{}, 1e-5);
  check_ranks(pdp::MixedBfloat16{}, 0.01);
}

}  // namespace gpu_checkpoint_test
