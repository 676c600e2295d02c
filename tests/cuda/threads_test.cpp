#include <pdp/comm/cuda_thread.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "course.hpp"
#include "gpu.hpp"

// Trains models on several streams of one GPU, and on several GPUs of one process.

namespace comm = pdp::comm;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using courses::check;

namespace {

/// CudaThread ranks that are assigned to the first `gpus` GPUs in turn.
class Threads : public comm::CudaThread {
 public:
  static inline int gpus = 1;

  Threads(BasicCommunicator&& group) : CudaThread{std::move(group)} {}
  [[nodiscard]] Threads split(int color, int key) { return BasicCommunicator::split(color, key); }
  static std::vector<Threads> world(int size) {
    std::vector<int> devices;
    for (int rank = 0; rank < size; ++rank) devices.push_back(rank % gpus);
    std::vector<Threads> ranks;
    for (CudaThread& each : CudaThread::world_on(devices)) ranks.push_back(Threads{std::move(each)});
    return ranks;
  }
};

/// Returns whether there is a GPU. Puts all ranks on the first one. A test can change that by `gpus`.
bool has_gpu() {
  Threads::gpus = 1;
  return gpu::device().has_value();
}

}  // namespace

TEST_CASE("Training over CudaThread matches one process on a CPU for every strategy", "[cuda][cuda_thread][equivalence]") {
  if (!has_gpu()) return;
  const bool several = GENERATE(false, true);
  if (several) Threads::gpus = pdp::cuda::devices();
  if (several && Threads::gpus == 1) return;
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3};
  for (const int ranks : {2, 3}) {
    if ((several || PDP_TEST_SANITIZED) && ranks == 2) continue;
    check<Threads>(strategy::DataParallel{}, ranks, options);
    check<Threads>(strategy::DataParallel{.accumulate = 2}, ranks, {.global_batch = 31, .seed = 3, .clip_norm = 0.5});
    for (const int stage : {1, 2, 3}) check<Threads>(strategy::Zero{.stage = stage, .accumulate = 2}, ranks, options);
    check<Threads>(strategy::Pipeline<>{.micro_batches = 3}, ranks, options);
    check<Threads>(strategy::Pipeline<plan::ZeroBubble>{.micro_batches = 4, .join_weights = 2}, ranks, options);
  }
  check<Threads>(strategy::TensorParallel{}, 2, options);
  check<Threads>(strategy::Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}, 4, options);
}

TEST_CASE("Training over CudaThread with Bfloat16Gradients has losses within 0.02 of those on a CPU", "[cuda][cuda_thread]") {
  if (has_gpu()) check<Threads>(strategy::DataParallel{}, 2, {.global_batch = 32, .seed = 3}, 2e-2, pdp::Bfloat16Gradients{});
}

TEST_CASE("Training in 16 bits over CudaThread has losses within 0.03 of those of float on a CPU", "[cuda][cuda_thread]") {
  if (!has_gpu()) return;
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3, .clip_norm = 0.5, .loss_scaling = pdp::LossScaling{.initial = 1024}};
  check<Threads>(strategy::DataParallel{.accumulate = 2}, 2, options, 0.03, pdp::MixedBfloat16{});
  check<Threads>(strategy::Zero{.stage = 3}, 2, options, 0.01, pdp::MixedFloat16{});
  check<Threads>(strategy::TensorParallel{}, 2, options, 0.03, pdp::MixedBfloat16{});
  check<Threads>(strategy::TensorParallel{}, 2, options, 0.01, pdp::MixedFloat16{});
}

TEST_CASE("Training over CudaThread repeats to the bit, with equal losses on all ranks", "[cuda][cuda_thread]") {
  if (!has_gpu()) return;
  const auto run = [] {
    return pdp::testing::ranks<Threads>(3, [](Threads& world) {
      return courses::train(world, strategy::DataParallel{}, tasks::residual_classifier(2), {.global_batch = 32, .seed = 3},
                            pdp::cuda::Device{{.index = world.device()}});
    });
  };
  const auto first = run(), second = run();
  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    CHECK(first[rank].losses == second[rank].losses);
    CHECK(first[rank].parameters == second[rank].parameters);
    CHECK(first[rank].losses == first[0].losses);
  }
}

TEST_CASE("Ranks over CudaThread add up the rows of a step, and all name the rank of a NaN gradient", "[cuda][cuda_thread]") {
  if (has_gpu()) courses::check_rows_and_culprit<Threads>();
}
