#pragma once

#include <functional>
#include <string>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/stop_requests.hpp>

namespace pdp::launch::detail {

/// Records why a rank has ended early. Ranks that are threads call it at the same time.
using Tell = std::function<void(const Problem& problem, int rank)>;

/// Returns the program's function with the result of a rank: that of the function, or 0 if it has none. Borrows it.
template <class World, class F>
std::function<int(World&)> rank_function(F& function) {
  return [&function](World& world) -> int {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, World&>>) {
      function(world);
      return 0;
    } else {
      return as_int(function(world));
    }
  };
}

/// Runs the program's function on one rank, and then a barrier: ranks that have not made the same calls find out there at the latest.
/// Returns the exit code. If the function throws, passes the error to `tell` and only then aborts the world. So this error is recorded
/// before the errors that it causes on other ranks.
template <class World>
int carry_out(World world, const std::function<int(World&)>& function, const Tell& tell) {
  try {
    const int code = function(world);
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
