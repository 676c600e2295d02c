// error: pdp: this communicator takes GPU memory, but was given host memory
#include <vector>

#include <pdp/comm/cuda_thread.hpp>

void sum(pdp::comm::CudaThread& world, std::vector<float>& values) { world.all_reduce(values, pdp::comm::Sum{}); }
