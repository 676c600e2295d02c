#pragma once

#include <optional>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/program_flags.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// How a program starts the ranks of its job, if it starts them itself.
struct Options {
  std::optional<int> ranks{};               // processes on this machine, up to most_local_ranks
  std::optional<int> threads{};             // threads of this process, up to most_local_ranks
  std::string comm{};                       // name of one of the program's communicators; empty: the first
  int nodes = 1;                            // machines of the job; the program is started once on each
  int node_rank = 0;                        // index of this machine
  std::optional<int> processes_per_node{};  // processes on each machine; default: 1 if there are several machines
  std::string address{};                    // of machine 0, if there are several machines
  int port = 0;                             // a free port at that address
  int restarts = 0;                         // how often to start the ranks again after one has failed; for `ranks` on one machine
  std::string rendezvous{};                 // RendezvousUrl of the ranks; empty: PDP_RENDEZVOUS, if it is set
  bool stops_on_request = false;            // the program stops by itself (see StopRequests): SIGTERM and SIGUSR1 do not end its ranks

  static constexpr int most_restarts = 1000;

  /// Returns the number of processes of the whole job; nothing if its ranks are not to be processes.
  [[nodiscard]] std::optional<int> processes() const {
    if (const std::optional<int> here = local_processes()) return nodes * *here;
    return std::nullopt;
  }
  /// Returns the number of processes on this machine; nothing if the ranks are not to be processes.
  [[nodiscard]] std::optional<int> local_processes() const {
    if (ranks) return ranks;
    return processes_per_node || nodes == 1 ? processes_per_node : 1;
  }
  /// Returns whether these options say which ranks to start, or a launcher has started this process as a rank.
  [[nodiscard]] bool ranks_are_given(const Variables& variable = environment) const;
  /// Throws UsageError if the options contradict each other or a value is out of range.
  void check() const;

  /// Reads --ranks N, --threads N, --restarts N, --comm NAME and --rendezvous URL from a command line, up to an argument --. Accepts
  /// --ranks=N, too. Returns the other arguments, those behind -- included. Throws UsageError if a value is missing or invalid, or if an
  /// argument looks like a misspelling of one of these flags and is no flag of the program. The options that it has read then keep their
  /// values.
  Arguments read(int argc, const char* const* argv, const ProgramFlags& program = {});
  /// Returns the options that read() reads.
  static Options from(int argc, const char* const* argv, const ProgramFlags& program = {});
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/source/options.hpp>
#endif
