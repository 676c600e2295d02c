// error: pdp: this communicator's calls take memory of a GPU, and were given memory of the host
#include <vector>

#include <pdp/comm/cuda_thread.hpp>

void sum(pdp::comm::CudaThread& world, std::vector<float>& values) { world.all_reduce(values, pdp::comm::Sum{}); }
