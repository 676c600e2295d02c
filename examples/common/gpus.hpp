#pragma once

#include <pdp/comm/nccl.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/launch/run.hpp>

namespace examples {

/// Runs `function(world, device)` on every rank, each with a GPU of its own.
template <class F>
int run_on_gpus(const pdp::launch::Options& options, F&& function) {
  try {
    static_cast<void>(pdp::cuda::devices());  // before ranks are started that would find out one by one
  } catch (...) {
    const auto problem = pdp::launch::Problem::current();
    pdp::launch::Report::print(problem, -1);
    return problem.exit_code();
  }
  return pdp::launch::run<pdp::comm::Nccl>(options, [&](pdp::comm::Nccl& world) {
    const pdp::cuda::Device device{{.index = world.device()}};
    if (world.size() > 1) return function(world, device);
    pdp::comm::Self self;  // so that a step is one graph
    function(self, device);
  });
}

}  // namespace examples
