#pragma once

#include <exception>
#include <string>

#include <pdp/comm/failure.hpp>
#include <pdp/core/error.hpp>

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
  static comm::Failure failure_at_start(int rank, const std::string& who = {}) {
    const std::string name = who.empty() ? text("rank ", rank) : who;
    try {
      throw;
    } catch (const PeerLost& error) {
      return {comm::Failure::Kind::lost, error.rank(), error.what()};
    } catch (const Timeout& error) {
      return {comm::Failure::Kind::timeout, rank, error.what()};
    } catch (const std::exception& error) {
      return {comm::Failure::Kind::lost, rank, text(name, " has failed while the job was starting: ", error.what())};
    } catch (...) {
      return {comm::Failure::Kind::lost, rank, text(name, " has failed while the job was starting")};
    }
  }

  /// Of the exception that is being handled.
  static Problem current() noexcept {
    try {
      try {
        throw;
      } catch (const UsageError& error) {
        return {Kind::usage, error.what()};
      } catch (const PeerLost& error) {
        return {Kind::consequence, error.what()};
      } catch (const std::exception& error) {
        return {Kind::root, error.what()};
      } catch (...) {
        return {Kind::root, "something was thrown that is no std::exception"};
      }
    } catch (...) {
      return {};  // no memory for the words
    }
  }
};

}  // namespace pdp::launch
