#pragma once

#include <array>
#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/launch/connector.hpp>
#include <pdp/launch/join.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/process/carry_out.hpp>
#include <pdp/launch/process/job.hpp>
#include <pdp/launch/process/threads.hpp>
#include <pdp/launch/program_flags.hpp>
#include <pdp/launch/start/start.hpp>
#include <pdp/launch/store/in_process_store.hpp>

namespace pdp::launch {

namespace detail {

template <class Comm>
comm::Any join_any(const JobPlace& place) {
  return comm::Any{join<Comm>(place)};
}

/// Whether a function may need properties of a communicator that an Any hides.
template <class Comm>
constexpr bool has_hidden_properties = comm::HasDeviceBuffers<Comm> || comm::QueuesMessages<Comm> || comm::Alone<Comm>;

/// Returns whether a function takes a comm::Any, but not each of these communicators. Asks for comm::Any only if necessary: a generic
/// function would be compiled with it, and may use members that an Any does not have.
template <class F, class... Comms>
consteval bool prefers_any() {
  if constexpr ((std::is_invocable_v<F&, Comms&> && ...))
    return false;
  else
    return std::is_invocable_v<F&, comm::Any&>;
}

/// Returns whether a program's function is called with a comm::Any: if the program has several communicators, or if the function accepts a
/// comm::Any, as a generic function does. The function is then compiled once, for processes and for threads.
template <class F, class... Comms>
consteval bool takes_any() {
  if constexpr (sizeof...(Comms) > 1)
    return true;
  else if constexpr (!(std::constructible_from<comm::Any, Comms> && ...))
    return false;
  else if constexpr ((has_hidden_properties<Comms> || ...))
    return prefers_any<F, Comms...>();
  else
    return std::is_invocable_v<F&, comm::Any&>;
}

/// A function that a program runs on each rank, with the program's own arguments. Borrows both.
template <class F>
struct WithArguments {
  F& function;
  const Arguments& arguments;

  template <class World>
  requires std::invocable<F&, World&, const Arguments&>
  auto operator()(World& world) const { return function(world, arguments); }
};

/// Returns how the ranks run if each calls `function` with a Comm, or with a comm::Thread. Borrows the function.
template <class Comm, class F>
Ranks ranks_with(F& function) {
  using Connectors = ProgramConnectors<Comm>;
  Ranks ranks{.connectors = Connectors::all, .of_threads = Connectors::of_threads};
  ranks.run_rank = [&function](const Start& start, const Tell& tell) {
    return carry_out(join<Comm>(start.place), rank_function<Comm>(function), tell);
  };
  if constexpr (comm::HasDeviceBuffers<Comm> && ConnectsThroughStore<Comm>) {
    ranks.run_threads = [&function](int count, const JobPlace& place) {
      InProcessStore store;
      const comm::TimePoint deadline = comm::Clock::now() + place.timeout;
      std::vector<Seat<Comm>> seats;
      for (int rank = 0; rank < count; ++rank) seats.push_back({store, rank, count, deadline});
      return run_threads<Comm>(std::move(seats), place.deadline, rank_function<Comm>(function));
    };
  } else if constexpr (comm::HasDeviceBuffers<Comm> && requires { Comm::world(1); }) {
    ranks.run_threads = [&function](int count, const JobPlace& place) {
      return run_threads<Comm>(Comm::world(count), place.deadline, rank_function<Comm>(function));
    };
  } else if constexpr (std::is_invocable_v<F&, comm::Thread&>) {
    ranks.run_threads = [&function](int count, const JobPlace& place) {
      return run_threads<comm::Thread>(comm::Thread::world(count), place.deadline, rank_function<comm::Thread>(function));
    };
  }
  return ranks;
}

}  // namespace detail

/// Runs `function(world)` on every rank of a job and returns the exit code for main. This process
///
/// - is one of the ranks, if a launcher has started it as a rank of a job (see JobPlace::from);
/// - else starts the ranks as processes or threads, if the options ask for them;
/// - else is the only rank, in a world of one.
///
/// When a rank fails, the job ends, or starts again as options.restarts permits: every process is gone within two seconds, and the first
/// error is printed with its rank. The exit code is 2 for a wrong command line or environment, 1 for other errors, 130 for SIGINT, 143 for
/// SIGTERM, else the result of `function`, or 0 if it has none. It is an error if standard output cannot be written. Closed standard
/// streams are replaced by /dev/null.
///
/// `function` is called with a comm::Any& that holds the communicator, so that a generic function is compiled once. A function that accepts
/// only a Comm& is called with that. comm::Thread connects ranks that are threads. A communicator of devices, such as comm::Nccl or
/// comm::CudaThread, connects threads itself, and is always passed as its own type. If the program has several communicators, options.comm
/// (--comm) names the one to use; the first is the default.
template <class Comm, class... Others, class F>
int run(const Options& options, F&& function) {
  if constexpr (detail::takes_any<F, Comm, Others...>()) {
    using Connectors = detail::ProgramConnectors<Comm, Others...>;
    static constexpr std::array joins{&detail::join_any<Comm>, &detail::join_any<Others>...};
    return detail::run_job(
        options, detail::ranks_with_any(Connectors::all, Connectors::of_threads, joins, detail::rank_function<comm::Any>(function)));
  } else {
    return detail::run_job(options, detail::ranks_with<Comm>(function));
  }
}

/// Calls run() with options from the command line (see Options::read). The other arguments are the program's own: calls
/// function(world, arguments) with them, in their order. If --help is given before --, prints the help of the program and of pdp's flags
/// instead, and returns 0.
template <class Comm, class... Others, class F>
int run(int argc, char** argv, const ProgramFlags& program, F&& function) {
  Options options;
  Arguments own;
  if (const auto code = detail::read(options, own, argc, argv, program, detail::ProgramConnectors<Comm, Others...>::all)) return *code;
  return run<Comm, Others...>(options, detail::WithArguments<std::remove_reference_t<F>>{function, own});
}
/// Does the same, but calls function(world), for a program without flags of its own, or one that reads the command line itself.
template <class Comm, class... Others, class F>
int run(int argc, char** argv, F&& function) {
  Options options;
  Arguments own;
  if (const auto code = detail::read(options, own, argc, argv, {}, detail::ProgramConnectors<Comm, Others...>::all)) return *code;
  return run<Comm, Others...>(options, function);
}

}  // namespace pdp::launch
