// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/comm/shm/source.hpp>

template class pdp::comm::stream::StreamTransport<pdp::comm::shm::Rings>;
template class pdp::comm::Member<pdp::comm::ShmTransport>;
