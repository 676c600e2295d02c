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

// Models on several streams of one GPU, and on several GPUs of one process.

namespace comm = pdp::comm;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using courses::check;

namespace {

/// Ranks of which each takes the next of some of the GPUs.
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

/// Whether there is a GPU. All ranks are on the first one then, unless a test says otherwise.
bool has_gpu() {
  Threads::gpus = 1;
  return gpu::device().has_value();
}

}  // namespace

TEST_CASE("threads with GPUs learn what one process on a CPU learns, by every strategy", "[cuda][cuda_thread][equivalence]") {
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

TEST_CASE("gradients travel rounded between threads on one GPU", "[cuda][cuda_thread]") {
  if (has_gpu()) check<Threads>(strategy::DataParallel{}, 2, {.global_batch = 32, .seed = 3}, 2e-2, pdp::Bfloat16Gradients{});
}

TEST_CASE("threads on one GPU whose models compute in 16 bits learn as one in float, within their precision", "[cuda][cuda_thread]") {
  if (!has_gpu()) return;
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3, .clip_norm = 0.5, .loss_scaling = pdp::LossScaling{.initial = 1024}};
  check<Threads>(strategy::DataParallel{.accumulate = 2}, 2, options, 0.03, pdp::MixedBfloat16{});
  check<Threads>(strategy::Zero{.stage = 3}, 2, options, 0.01, pdp::MixedFloat16{});
  check<Threads>(strategy::TensorParallel{}, 2, options, 0.03, pdp::MixedBfloat16{});
  check<Threads>(strategy::TensorParallel{}, 2, options, 0.01, pdp::MixedFloat16{});
}

TEST_CASE("threads on one GPU learn the same bits in every run, and on every rank", "[cuda][cuda_thread]") {
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

TEST_CASE("threads on GPUs count the rows of a step together, and all say whose gradient is not finite", "[cuda][cuda_thread]") {
  if (has_gpu()) courses::check_rows_and_culprit<Threads>();
}
