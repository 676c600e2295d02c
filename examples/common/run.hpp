#pragma once

#include <functional>

#include <pdp/comm/any.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/process/report.hpp>

// CMake defines this if it has found the libraries.
#ifdef PDP_EXAMPLES_WITH_GPUS
#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/cuda/device.hpp>
#endif

namespace examples {

/// The function that a program runs on each of its ranks.
using OnRank = std::function<void(pdp::comm::Any& world)>;

/// Runs a function on every rank, over the communicator of this build that --comm names. Returns the exit code.
int run(const pdp::launch::Options& options, const OnRank& function);
/// Runs a function on the only rank of a program. Returns the exit code.
int run_alone(const pdp::launch::Options& options, const OnRank& function);

#ifdef PDP_EXAMPLES_WITH_GPUS
/// The function that a program runs on each rank that has a GPU.
template <class Comm>
using OnGpu = std::function<void(Comm& world, const pdp::cuda::Device& device)>;

/// Runs a function on every rank. Returns the exit code. A rank is a process with a GPU of its own, or a thread. Threads share the GPUs;
/// with --comm nccl each has its own.
int run_on_gpus(const pdp::launch::Options& options, const OnGpu<pdp::comm::Nccl>& function, const OnGpu<pdp::comm::CudaThread>& on_thread);
#endif
/// Throws ConfigError: this program was built without support for GPUs.
[[noreturn]] void throw_without_gpus();

/// Runs `function(world)` on every rank by `run_on_cpus`; or, with --device cuda, `function(world, device)` on ranks that have a GPU. With
/// --plan no GPU is needed. Returns the exit code.
template <class Flags, class F>
int run_on_device(const Flags& flags, const F& function, int (*run_on_cpus)(const pdp::launch::Options&, const OnRank&) = run) try {
  if (flags.device != "cuda" || flags.plan) return run_on_cpus(flags.launch, function);
#ifdef PDP_EXAMPLES_WITH_GPUS
  return run_on_gpus(flags.launch, function, function);
#else
  throw_without_gpus();
#endif
} catch (...) {
  return pdp::launch::Report::print_current();
}

}  // namespace examples
