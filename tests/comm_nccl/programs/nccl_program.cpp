// A program over comm::Nccl, as a user would write it. It sums one number of each rank.
#include <cuda_runtime_api.h>

#include <cstdio>

#include <pdp/comm/nccl.hpp>
#include <pdp/launch/run.hpp>

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Nccl>(argc, argv, [](pdp::comm::Nccl& world) {
    auto values = world.allocate<float>(1000);
    float mine = static_cast<float>(world.rank() + 1), sum = 0;
    cudaMemcpy(&values.span().back(), &mine, sizeof mine, cudaMemcpyDefault);
    world.all_reduce(values, pdp::comm::Sum{});
    cudaMemcpy(&sum, &values.span().back(), sizeof sum, cudaMemcpyDefault);
    if (world.rank() == 0) std::printf("%d ranks on GPUs, sum %g\n", world.size(), static_cast<double>(sum));
  });
}
