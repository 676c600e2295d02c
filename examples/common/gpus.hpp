#pragma once

#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/launch/run.hpp>

namespace examples {

/// Runs `function(world, device)` on every rank: processes with a GPU of their own each, or threads that have the GPUs in turn,
/// or, with --comm nccl, a GPU of their own each.
template <class F>
int run_on_gpus(const pdp::launch::Options& options, F&& function) {
  try {
    static_cast<void>(pdp::cuda::devices());  // before ranks are started that would find out one by one
  } catch (...) {
    const auto problem = pdp::launch::Problem::current();
    pdp::launch::Report::print(problem, -1);
    return problem.exit_code();
  }
  const auto on_rank = [&](auto& world) {
    const pdp::cuda::Device device{{.index = world.device()}};
    function(world, device);
  };
  if (options.threads && options.comm != pdp::comm::Nccl::name) return pdp::launch::run<pdp::comm::CudaThread>(options, on_rank);
  return pdp::launch::run<pdp::comm::Nccl>(options, on_rank);
}

}  // namespace examples
