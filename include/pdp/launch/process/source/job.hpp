#pragma once

/// Definitions for pdp/launch/process/job.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/file_size_limit.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/launch/process/job.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/process/stack.hpp>
#include <pdp/launch/process/threads.hpp>
#include <pdp/launch/start/environment.hpp>
#include <pdp/launch/stop_requests.hpp>

namespace pdp::launch::detail {

PDP_INLINE Ranks ranks_with_any(std::span<const Connector> connectors, std::string_view of_threads,
                                std::span<comm::Any (*const)(const JobPlace&)> joins, const std::function<int(comm::Any&)>& function) {
  return {connectors, of_threads,
          [joins, function](const Start& start, const Tell& tell) { return carry_out(joins[start.comm](start.place), function, tell); },
          [function](int ranks, const JobPlace& place) {
            return run_threads<comm::Any>(comm::Thread::world(ranks), place.deadline, function);
          }};
}

/// Tells the ranks that wait for this process in the job's store why it has failed. Does nothing if no communicator uses a store.
PDP_INLINE void tell_others_in_store(std::span<const Connector> connectors, const Options& options) noexcept {
  for (const Connector& each : connectors)
    if (each.tell_others != nullptr) return each.tell_others(options);
}

PDP_INLINE Start start(const Options& options, std::span<const Connector> connectors, std::string_view of_threads) {
  std::vector<std::string_view> names;
  for (const Connector& each : connectors) names.push_back(each.name);
  const Connections known{names, of_threads};
  if (std::ranges::any_of(connectors, [](const Connector& each) { return each.end_job != nullptr; })) {
    options.check();
    if (connectors[Start::choose(options, known)].end_job != nullptr) return Start::from(options, known, environment, /*has_store*/ false);
  }
  for (const Connector& each : connectors)
    if (each.start != nullptr) return each.start(options, known);
  return Start::from(options, known, environment);
}

PDP_INLINE std::optional<int> read(Options& options, Arguments& own, int argc, char** argv, const ProgramFlags& program,
                                   std::span<const Connector> connectors) {
  try {
    if (asks_for_help(argc, argv)) {
      write_standard_output(help_text(program));
      return 0;
    }
    own = options.read(argc, argv, program);
  } catch (...) {
    const int code = Report::print_current();
    tell_others_in_store(connectors, options);
    return code;
  }
  return std::nullopt;
}

/// Throws UsageError: the program cannot start the ranks that the options ask for.
[[noreturn]] PDP_INLINE void refuse_processes(const Connector& connector, int ranks) {
  if (connector.launcher.empty()) throw UsageError{"--ranks: the ranks of this program's communicator run in one process; use --threads"};
  throw UsageError{text("--ranks ", ranks, ": a program cannot start the ranks of ", connector.name, " itself; start it with ",
                        connector.launcher, " -n ", ranks, ", without --ranks")};
}

PDP_INLINE int run_process(const Options& options, const Start& start, const Ranks& ranks) {
  const Report report{environment};
  bool failed = false;
  const Tell tell = [&](const Problem& problem, int rank) {
    failed = true;
    report.problem(problem, rank, start.place.size);
    // Otherwise the other ranks would wait for this one: neither the launcher of the library nor a message ends them.
    if (const auto end_job = ranks.connectors[start.comm].end_job; end_job != nullptr) end_job(problem.exit_code());
  };
  try {
    widen_process_stack();
    widen_thread_stacks();
  } catch (...) {
    const Problem problem = Problem::current();
    tell(problem, start.place.rank);
    tell_others_in_store(ranks.connectors, options);
    return problem.exit_code();
  }
  int code = 0;
  try {
    code = ranks.run_rank(start, tell);
  } catch (...) {
    const Problem problem = Problem::current();
    tell(problem, start.place.rank);
    return problem.exit_code();
  }
  if (!failed) report.finished();
  return code;
}

PDP_INLINE int run_job(const Options& options, const Ranks& ranks) {
  open_standard_streams();
  report_file_size_limit();
  try {
    const Start start = detail::start(options, ranks.connectors, ranks.of_threads);
    std::optional<StopRequests> noticed;  // also while the ranks wait for each other
    if (options.stops_on_request && start.kind != Start::Kind::processes) noticed.emplace();
    if (start.kind == Start::Kind::rank) return run_process(options, start, ranks);
    if (start.kind == Start::Kind::processes) {
      const Connector& connector = ranks.connectors[start.comm];
      if (connector.run_processes == nullptr) refuse_processes(connector, *options.processes());
      return connector.run_processes(options);
    }
    if (!ranks.run_threads) throw UsageError{"--threads: the ranks of this program cannot be threads; omit --threads"};
    return ranks.run_threads(*options.threads, start.place);
  } catch (...) {
    const int code = Report::print_current();
    tell_others_in_store(ranks.connectors, options);
    return code;
  }
}

}  // namespace pdp::launch::detail
