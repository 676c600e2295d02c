// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/comm/backend/source/checks.hpp>
#include <pdp/comm/backend/source/members_of_color.hpp>
#include <pdp/comm/join/source/store.hpp>
#include <pdp/comm/message/source/member.hpp>
#include <pdp/comm/message/source/probe.hpp>
#include <pdp/comm/source/checked.hpp>
#include <pdp/comm/source/clock.hpp>
#include <pdp/comm/source/envelope.hpp>
#include <pdp/comm/source/failure.hpp>
#include <pdp/comm/source/instrumented.hpp>
#include <pdp/comm/source/region.hpp>
#include <pdp/comm/source/self.hpp>
#include <pdp/comm/source/thread.hpp>
#include <pdp/comm/thread/source/memory.hpp>
#include <pdp/comm/thread/source/peers.hpp>
#include <pdp/comm/thread/source/probes.hpp>
#include <pdp/comm/thread/source/transport.hpp>

template class pdp::comm::Member<pdp::comm::SelfTransport>;
template class pdp::comm::Member<pdp::comm::ThreadTransport>;
