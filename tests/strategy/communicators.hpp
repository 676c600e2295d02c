#pragma once

#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>

#include <tuple>
#include <type_traits>

/// The communicators over which a test of strategies runs. Under a sanitizer only the one whose ranks share most memory, to save time: each
/// communicator has tests of its own.
using Communicators =
    std::conditional_t<PDP_TEST_SANITIZED, std::tuple<pdp::comm::Thread>, std::tuple<pdp::comm::Thread, pdp::comm::Shm, pdp::comm::Tcp>>;
