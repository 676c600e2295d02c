#pragma once

#include <pdp/pdp.hpp>

#include "flags.hpp"

#ifdef PDP_EXAMPLES_WITH_GPUS
#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/cuda/device.hpp>
#endif

namespace examples {

/// Trains the classifier of the MNIST programs as the flags say, in parallel by a strategy, on the CPU or on a GPU (`device`).
/// `global_batch` is the number of samples per step of all ranks.
void train_digits(pdp::comm::Any& world, const pdp::strategy::AnyStrategy& strategy, const Flags& flags, pdp::Index global_batch);
#ifdef PDP_EXAMPLES_WITH_GPUS
void train_digits(pdp::comm::Nccl& world, const pdp::strategy::AnyStrategy& strategy, const Flags& flags, pdp::Index global_batch,
                  const pdp::cuda::Device& device);
void train_digits(pdp::comm::CudaThread& world, const pdp::strategy::AnyStrategy& strategy, const Flags& flags, pdp::Index global_batch,
                  const pdp::cuda::Device& device);
#endif

}  // namespace examples
