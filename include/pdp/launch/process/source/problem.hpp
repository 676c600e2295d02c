#pragma once

/// Definitions for pdp/launch/process/problem.hpp; see pdp/core/separate_compilation.hpp.

#include <exception>
#include <string>
#include <system_error>

#include <pdp/comm/failure.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/process/problem.hpp>

namespace pdp::launch {

PDP_INLINE comm::Failure Problem::failure_at_start(int rank, const std::string& who) {
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

PDP_INLINE Problem Problem::current() noexcept {
  try {
    try {
      throw;
    } catch (const UsageError& error) {
      return {Kind::usage, error.what()};
    } catch (const PeerLost& error) {
      return {Kind::consequence, error.what()};
    } catch (const std::system_error& error) {
      // std::thread throws such an error, whose message is only that of its code.
      if (error.code() == std::errc::resource_unavailable_try_again && error.what() == error.code().message())
        return {Kind::root, text("a thread cannot be started: ", comm::describe_system_error(error.code().value()))};
      return {Kind::root, error.what()};
    } catch (const std::exception& error) {
      return {Kind::root, error.what()};
    } catch (...) {
      return {Kind::root, "an object that is not a std::exception was thrown"};
    }
  } catch (...) {
    return {};  // no memory for the message
  }
}

}  // namespace pdp::launch
