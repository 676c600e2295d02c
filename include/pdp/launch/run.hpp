#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/file_size_limit.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/launch/join.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/process/carry_out.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/process/stack.hpp>
#include <pdp/launch/process/threads.hpp>
#include <pdp/launch/program_flags.hpp>
#include <pdp/launch/start/processes.hpp>
#include <pdp/launch/start/start.hpp>
#include <pdp/launch/stop_requests.hpp>
#include <pdp/launch/store/in_process_store.hpp>

namespace pdp::launch {

namespace detail {

template <class Comm>
comm::Any join_any(const JobPlace& place) {
  return comm::Any{join<Comm>(place)};
}

/// Returns whether a program's function is called with a comm::Any: if the program has several communicators, or if the function accepts a
/// comm::Any, as a generic function does. The function is then compiled once, for processes and for threads.
template <class F, class... Comms>
consteval bool takes_any() {
  if constexpr (sizeof...(Comms) > 1)
    return true;
  else if constexpr (!(std::constructible_from<comm::Any, Comms> && ...) ||
                     (((comm::HasDeviceBuffers<Comms> || comm::QueuesMessages<Comms> || comm::Alone<Comms>) || ...) &&
                      (std::is_invocable_v<F&, Comms&> && ...)))
    return false;  // the function may need properties of these communicators that an Any hides
  else
    return std::is_invocable_v<F&, comm::Any&>;
}

/// Ends the other ranks if the communicator's library has a launcher (see HasLauncher). Otherwise they would wait for this rank: neither
/// that launcher nor a message ends them.
template <class Comm>
void end_job(int exit_code) {
  if constexpr (HasLauncher<Comm>) Comm::end_job(exit_code);
}

/// Joins the job and returns the communicator as the type that the function takes.
template <class F, class... Comms>
auto join_chosen(const Start& start) {
  if constexpr (takes_any<F, Comms...>()) {
    constexpr std::array joins{&join_any<Comms>...};
    return joins[start.comm](start.place);
  } else {
    return join<Comms...>(start.place);
  }
}

/// Tells the ranks that wait for this process in the job's store why it has failed. Does nothing if no communicator uses a store.
template <class... Comms>
void tell_others_in_store([[maybe_unused]] const Options& options) noexcept {
  if constexpr ((ConnectsThroughStore<Comms> || ...)) tell_others(options);
}

template <class... Comms, class F>
int run_process(const Options& options, const Start& start, const Report& report, F& function) {
  bool failed = false;
  const auto tell = [&](const Problem& problem, int rank) {
    failed = true;
    report.problem(problem, rank, start.place.size);
    constexpr std::array ends{&end_job<Comms>...};
    ends[start.comm](problem.exit_code());
  };
  try {
    widen_process_stack();
    widen_thread_stacks();
  } catch (...) {
    const Problem problem = Problem::current();
    tell(problem, start.place.rank);
    tell_others_in_store<Comms...>(options);
    return problem.exit_code();
  }
  int code = 0;
  try {
    code = carry_out(join_chosen<F, Comms...>(start), function, tell);
  } catch (...) {
    const Problem problem = Problem::current();
    tell(problem, start.place.rank);
    return problem.exit_code();
  }
  if (!failed) report.finished();
  return code;
}

/// Reads the command line. Returns an exit code if the program is to end: after --help, or after a wrong command line.
template <class... Comms>
std::optional<int> read(Options& options, Arguments& own, int argc, char** argv, const ProgramFlags& program) {
  try {
    if (asks_for_help(argc, argv)) {
      write_standard_output(help_text(program));
      return 0;
    }
    own = options.read(argc, argv, program);
  } catch (...) {
    const int code = Report::print_current();
    tell_others_in_store<Comms...>(options);
    return code;
  }
  return std::nullopt;
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

/// Throws UsageError: the program cannot start the ranks that the options ask for.
template <class... Comms>
[[noreturn]] void refuse_processes(const Start& start, int ranks) {
  constexpr auto launcher_of = []<class Comm>(std::type_identity<Comm>) -> std::string_view {
    if constexpr (HasLauncher<Comm>)
      return Comm::launcher;
    else
      return {};
  };
  const std::string_view launcher = std::array{launcher_of(std::type_identity<Comms>{})...}[start.comm];
  if (launcher.empty()) throw UsageError{"--ranks: the ranks of this program's communicator run in one process; use --threads"};
  const std::string_view name = std::array{comm::traits_of<Comms>.name...}[start.comm];
  throw UsageError{text("--ranks ", ranks, ": a program cannot start the ranks of ", name, " itself; start it with ", launcher, " -n ",
                        ranks, ", without --ranks")};
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
  using ThreadWorld = std::conditional_t<detail::takes_any<F, Comm, Others...>(), comm::Any, comm::Thread>;
  open_standard_streams();
  report_file_size_limit();
  try {
    const Start start = detail::start<Comm, Others...>(options);
    std::optional<StopRequests> noticed;  // also while the ranks wait for each other
    if (options.stops_on_request && start.kind != Start::Kind::processes) noticed.emplace();
    if (start.kind == Start::Kind::rank) return detail::run_process<Comm, Others...>(options, start, Report{environment}, function);
    if (start.kind == Start::Kind::processes) {
      if constexpr ((ConnectsThroughStore<Comm> || ... || ConnectsThroughStore<Others>))
        if (std::array{ConnectsThroughStore<Comm>, ConnectsThroughStore<Others>...}[start.comm]) return run_processes(options);
      detail::refuse_processes<Comm, Others...>(start, *options.processes());
    }
    if constexpr (sizeof...(Others) == 0 && comm::HasDeviceBuffers<Comm> && ConnectsThroughStore<Comm>) {
      InProcessStore store;
      const comm::TimePoint deadline = comm::Clock::now() + start.place.timeout;
      std::vector<detail::Seat<Comm>> seats;
      for (int rank = 0; rank < *options.threads; ++rank) seats.push_back({store, rank, *options.threads, deadline});
      return detail::run_threads<Comm>(std::move(seats), start.place.deadline, function);
    } else if constexpr (sizeof...(Others) == 0 && comm::HasDeviceBuffers<Comm> && requires { Comm::world(1); }) {
      return detail::run_threads<Comm>(Comm::world(*options.threads), start.place.deadline, function);
    } else if constexpr (std::is_invocable_v<F&, ThreadWorld&>) {
      return detail::run_threads<ThreadWorld>(comm::Thread::world(*options.threads), start.place.deadline, function);
    } else {
      throw UsageError{"--threads: the ranks of this program cannot be threads; omit --threads"};
    }
  } catch (...) {
    const int code = Report::print_current();
    detail::tell_others_in_store<Comm, Others...>(options);
    return code;
  }
}

/// Calls run() with options from the command line (see Options::read). The other arguments are the program's own: calls
/// function(world, arguments) with them, in their order. If --help is given before --, prints the help of the program and of pdp's flags
/// instead, and returns 0.
template <class Comm, class... Others, class F>
int run(int argc, char** argv, const ProgramFlags& program, F&& function) {
  Options options;
  Arguments own;
  if (const auto code = detail::read<Comm, Others...>(options, own, argc, argv, program)) return *code;
  return run<Comm, Others...>(options, detail::WithArguments<std::remove_reference_t<F>>{function, own});
}
/// Does the same, but calls function(world), for a program without flags of its own, or one that reads the command line itself.
template <class Comm, class... Others, class F>
int run(int argc, char** argv, F&& function) {
  Options options;
  Arguments own;
  if (const auto code = detail::read<Comm, Others...>(options, own, argc, argv, {})) return *code;
  return run<Comm, Others...>(options, function);
}

}  // namespace pdp::launch
