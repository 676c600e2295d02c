#pragma once

#include <string>

#include <pdp/comm/failure.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// The reason why a rank has ended early.
struct Problem {
  enum class Kind : char {
    root = 'E',         // an error of this rank
    usage = 'U',        // a wrong command line or environment
    consequence = 'C',  // another rank has ended
  };

  Kind kind = Kind::root;
  std::string message;

  [[nodiscard]] int exit_code() const { return kind == Kind::usage ? 2 : 1; }

  /// Returns the failure to report to the other ranks. Call it in the handler of an exception that ends a rank while the job is starting.
  /// `who`: the subject of the message, if it is not the rank itself.
  static comm::Failure failure_at_start(int rank, const std::string& who = {});

  /// Returns the problem that the exception being handled describes.
  static Problem current() noexcept;
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/problem.hpp>
#endif
