#pragma once

#include <string>

#include <pdp/comm/failure.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// What ended a rank before its time.
struct Problem {
  enum class Kind : char {
    root = 'E',         // a fault of its own
    usage = 'U',        // the command line or the environment
    consequence = 'C',  // another rank's end
  };

  Kind kind = Kind::root;
  std::string message;

  /// What a program's exit code says of it.
  [[nodiscard]] int exit_code() const { return kind == Kind::usage ? 2 : 1; }

  /// Returns the failure to report to the other ranks if the exception that is being handled ends a rank while the job is starting. `who`:
  /// the part that has failed, if not the rank itself.
  static comm::Failure failure_at_start(int rank, const std::string& who = {});

  /// Of the exception that is being handled.
  static Problem current() noexcept;
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/problem.hpp>
#endif
