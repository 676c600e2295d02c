// Added to whatever links pdp::cuda.
#include <pdp/comm/cuda_thread/source.hpp>
