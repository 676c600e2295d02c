#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include <pdp/comm/any.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/connector.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/process/carry_out.hpp>
#include <pdp/launch/program_flags.hpp>
#include <pdp/launch/start/start.hpp>

/// The part of launch::run that depends on no type of the program.
namespace pdp::launch::detail {

/// How the ranks of a program run. Borrows the connectors.
struct Ranks {
  std::span<const Connector> connectors;  // of the program's communicators, in order
  std::string_view of_threads;            // the name of the communicator that connects threads
  /// Joins the job as the rank that `start` describes, and runs the program's function. Returns the exit code.
  std::function<int(const Start& start, const Tell& tell)> run_rank{};
  /// Runs all ranks as threads. Returns the exit code. Empty if they cannot be threads.
  std::function<int(int ranks, const JobPlace& place)> run_threads{};
};

/// Returns how the ranks run if each calls `function` with a comm::Any. joins[i] joins a job with communicator i.
Ranks ranks_with_any(std::span<const Connector> connectors, std::string_view of_threads,
                     std::span<comm::Any (*const)(const JobPlace&)> joins, const std::function<int(comm::Any&)>& function);

/// Decides what this process does for its job (see Start::from).
Start start(const Options& options, std::span<const Connector> connectors, std::string_view of_threads);

/// Reads the command line. Returns an exit code if the program is to end: after --help, or after a wrong command line.
std::optional<int> read(Options& options, Arguments& own, int argc, char** argv, const ProgramFlags& program,
                        std::span<const Connector> connectors);

/// Does what the options and the environment ask of this process. Returns its exit code.
int run_job(const Options& options, const Ranks& ranks);

}  // namespace pdp::launch::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/job.hpp>
#endif
