// error: pdp: these values are in GPU memory, which the host cannot access
#include <pdp/comm/nccl.hpp>
#include <pdp/comm/thread.hpp>

float first(pdp::comm::Nccl& world) { return world.allocate<float>(8)[0]; }
