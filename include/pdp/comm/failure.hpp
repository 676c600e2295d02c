#pragma once

#include <string>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// The reason why a world has ended early. Every rank receives it and throws it.
struct Failure {
  enum class Kind : unsigned char { lost, mismatch, timeout };

  Kind kind = Kind::lost;
  int rank = -1;  // rank in the world: the lost rank, or the rank that found the fault
  std::string message;

  /// Throws PeerLost, MismatchedCollective or Timeout, according to `kind`.
  [[noreturn]] void raise() const;
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/failure.hpp>
#endif
