// Added to whatever links pdp::nccl.
#include <pdp/comm/nccl/source.hpp>
