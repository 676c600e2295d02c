#pragma once

#include <pdp/launch/options.hpp>
#include <pdp/launch/problem.hpp>
#include <pdp/launch/report.hpp>

namespace examples {

/// Says that this program has nothing for GPUs.
template <class F>
int run_on_gpus(const pdp::launch::Options&, F&&) {
  const pdp::launch::Problem problem{
      pdp::launch::Problem::Kind::root,
      "--device cuda: this program was built without GPUs, as CMake found no CUDA toolkit or no NCCL; install both and build it anew, or "
      "compute on the CPU"};
  pdp::launch::Report::print(problem, -1);
  return problem.exit_code();
}

}  // namespace examples
