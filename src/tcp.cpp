// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/comm/tcp/source.hpp>

template class pdp::comm::stream::StreamTransport<pdp::comm::tcp::Sockets>;
template class pdp::comm::Member<pdp::comm::TcpTransport>;
