// Compiled once for a program.
#include <pdp/comm/cuda_thread/source.hpp>
