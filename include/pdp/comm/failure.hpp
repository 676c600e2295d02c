#pragma once

#include <string>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// Why a world has ended before its time. It is told to every rank, and every rank throws it.
struct Failure {
  enum class Kind : unsigned char { lost, mismatch, timeout };

  Kind kind = Kind::lost;
  int rank = -1;  // of the world: the rank that is gone, or that found the fault
  std::string message;

  [[noreturn]] void raise() const;
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/failure.hpp>
#endif
