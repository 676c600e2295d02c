// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/launch/start/source.hpp>

template class pdp::comm::Member<pdp::comm::SelfTransport>;
template class pdp::comm::Member<pdp::comm::ThreadTransport>;
