#pragma once

#include <pdp/launch/options.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/process/report.hpp>

namespace examples {

/// Says that this program has nothing for GPUs.
template <class F>
int run_on_gpus(const pdp::launch::Options&, F&&) {
  const pdp::launch::Problem problem{
      pdp::launch::Problem::Kind::root,
      "--device cuda: this program was built without GPUs; to build it with them, CMake must find the CUDA toolkit, nvcc (by PATH or "
      "CUDACXX) and NCCL, without PDP_WITH_CUDA=OFF and without a sanitizer; or compute on the CPU"};
  pdp::launch::Report::print(problem, -1);
  return problem.exit_code();
}

}  // namespace examples
