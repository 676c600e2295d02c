// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/comm/hierarchical/source.hpp>

template class pdp::comm::stream::StreamTransport<pdp::comm::hierarchical::HostLinks>;
template class pdp::comm::Member<pdp::comm::HierarchicalTransport>;
