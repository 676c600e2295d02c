// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/rpc/call/source/arrivals.hpp>
#include <pdp/rpc/call/source/core.hpp>
#include <pdp/rpc/call/source/fault.hpp>
#include <pdp/rpc/call/source/method.hpp>
#include <pdp/rpc/call/source/observed.hpp>
#include <pdp/rpc/call/source/running.hpp>
#include <pdp/rpc/call/source/waiting.hpp>
#include <pdp/rpc/source/autograd.hpp>
#include <pdp/rpc/source/error.hpp>
#include <pdp/rpc/source/future.hpp>
#include <pdp/rpc/source/remote.hpp>
#include <pdp/rpc/source/timeline.hpp>
#include <pdp/rpc/wire/source/courier.hpp>
