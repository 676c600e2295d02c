#pragma once

#include <pdp/comm/any.hpp>
#include <pdp/comm/hierarchical.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/run.hpp>

// CMake defines these if it has found the libraries.
#ifdef PDP_EXAMPLES_WITH_GLOO
#include <pdp/comm/gloo.hpp>
#endif
#ifdef PDP_EXAMPLES_WITH_MPI
#include <pdp/comm/mpi.hpp>
#endif
#ifdef PDP_EXAMPLES_WITH_GPUS
#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/cuda/device.hpp>
#endif

namespace examples {

/// Runs `function(world)` on every rank, where `world` is a pdp::comm::Any& that holds what --comm names: a communicator of those that are
/// given, or if there are none, of all that this build has.
template <class... Comms, class F>
int run(const pdp::launch::Options& options, F&& function) {
  if constexpr (sizeof...(Comms) > 0)
    return pdp::launch::run<Comms...>(options, [&](auto& connected) {
      pdp::comm::Any world{connected.split(0, connected.rank())};
      function(world);
    });
  else
    return pdp::launch::run<pdp::comm::Default, pdp::comm::Tcp, pdp::comm::Shm
#ifdef PDP_EXAMPLES_WITH_GLOO
                            ,
                            pdp::comm::Gloo
#endif
#ifdef PDP_EXAMPLES_WITH_MPI
                            ,
                            pdp::comm::Mpi
#endif
                            >(options, function);
}

#ifdef PDP_EXAMPLES_WITH_GPUS
/// Runs `function(world, device)` on every rank: processes with a GPU of their own each, or threads that have the GPUs in turn,
/// or, with --comm nccl, a GPU of their own each.
template <class F>
int run_on_gpus(const pdp::launch::Options& options, F&& function) {
  static_cast<void>(pdp::cuda::devices());  // throws before ranks are started that would find out one by one
  const auto on_rank = [&](auto& world) {
    const pdp::cuda::Device device{{.index = world.device()}};
    function(world, device);
  };
  if (options.threads && options.comm != pdp::comm::Nccl::name) return pdp::launch::run<pdp::comm::CudaThread>(options, on_rank);
  return pdp::launch::run<pdp::comm::Nccl>(options, on_rank);
}
#else
template <class F>
int run_on_gpus(const pdp::launch::Options&, F&&) {
  throw pdp::ConfigError{
      "--device cuda: this program was built without GPUs; to build it with them, CMake must find the CUDA toolkit, nvcc (by PATH or "
      "CUDACXX) and NCCL, without PDP_WITH_CUDA=OFF and without a sanitizer; or compute on the CPU"};
}
#endif

/// The same as flags say: with --device cuda `function(world, device)`, where each rank has a GPU. What is only planned needs none.
template <class... Comms, class Flags, class F>
int run_on_device(const Flags& flags, F&& function) try {
  if (flags.device == "cuda" && !flags.plan) return run_on_gpus(flags.launch, function);
  return examples::run<Comms...>(flags.launch, function);
} catch (...) {
  return pdp::launch::Report::print_current();
}

}  // namespace examples
