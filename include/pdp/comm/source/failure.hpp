#pragma once

/// Definitions for pdp/comm/failure.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/comm/failure.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE void Failure::raise() const {
  switch (kind) {
    case Kind::mismatch:
      throw MismatchedCollective{message};
    case Kind::timeout:
      throw Timeout{message};
    case Kind::lost:
      break;
  }
  throw PeerLost{rank, message};
}

}  // namespace pdp::comm
