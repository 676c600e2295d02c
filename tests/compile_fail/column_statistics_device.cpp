// error: pdp: this communicator takes device memory; give column_statistics the device as its third argument
#include <pdp/comm/cuda_thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/train/column_statistics.hpp>

auto statistics(pdp::comm::CudaThread& world, const pdp::data::InMemory<float>& set) { return pdp::column_statistics(world, set); }
