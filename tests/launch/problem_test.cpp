#include <system_error>

#include <pdp/core/error.hpp>
#include <pdp/launch/process/problem.hpp>

#include "catch.hpp"

using pdp::launch::Problem;

namespace {

template <class Error>
Problem problem_of(const Error& error) {
  try {
    throw error;
  } catch (...) {
    return Problem::current();
  }
}

}  // namespace

TEST_CASE("Problem::current names the limits of threads if one cannot be started", "[launch]") {
  const std::error_code again = std::make_error_code(std::errc::resource_unavailable_try_again);
  const Problem problem = problem_of(std::system_error{again});
  CHECK(problem.kind == Problem::Kind::root);
  CHECK_THAT(problem.message, StartsWith("a thread cannot be started: ") && Contains("ulimit -u") && Contains("pids.max"));
  CHECK(problem_of(std::system_error{again, "socket"}).message == "socket: " + again.message());
  CHECK(problem_of(std::system_error{std::make_error_code(std::errc::no_space_on_device)}).message == "No space left on device");
}

TEST_CASE("Problem::current distinguishes the errors of this rank, of the command line and of other ranks", "[launch]") {
  CHECK(problem_of(pdp::ConfigError{"a"}).kind == Problem::Kind::root);
  CHECK(problem_of(pdp::UsageError{"b"}).kind == Problem::Kind::usage);
  CHECK(problem_of(pdp::UsageError{"b"}).exit_code() == 2);
  CHECK(problem_of(1).message == "an object that is not a std::exception was thrown");
}
