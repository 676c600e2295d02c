// error: pdp: these values lie in memory of a GPU, where the host cannot touch them
#include <pdp/comm/nccl.hpp>
#include <pdp/comm/thread.hpp>

float first(pdp::comm::Nccl& world) { return world.allocate<float>(8)[0]; }
