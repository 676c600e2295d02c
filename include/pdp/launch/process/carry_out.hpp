#pragma once

#include <string>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/stop_requests.hpp>

namespace pdp::launch::detail {

/// Runs the user's function on one rank, and then a barrier: ranks that have not made the same calls find out there at the latest. Returns
/// the exit code: the result of the function, or 0 if it has none. If the function throws, passes the error to `tell` and only then aborts
/// the world. So this error is recorded before the errors that it causes on other ranks.
template <class Comm, class F, class Tell>
int carry_out(Comm world, F& function, const Tell& tell) {
  try {
    int code = 0;  // NOLINT(misc-const-correctness): it is assigned if the function has a result
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Comm&>>)
      function(world);
    else
      code = as_int(function(world));
    check_standard_output();
    world.barrier();
    return code;
  } catch (const Stopped& stopped) {  // on every rank
    world.barrier();
    if (world.rank() == 0) Report::print({.message = stopped.what()}, -1);
    return Stopped::exit_code;
  } catch (...) {
    const Problem problem = Problem::current();
    tell(problem, world.rank());
    if constexpr (requires { world.abort(problem.message); }) world.abort(text("rank ", world.rank(), " has failed: ", problem.message));
    return problem.exit_code();
  }
}

}  // namespace pdp::launch::detail
