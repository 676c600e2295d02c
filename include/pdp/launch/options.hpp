#pragma once

#include <optional>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// How the ranks of a job are to be started, where this program starts them itself.
struct Options {
  std::optional<int> ranks{};               // local processes, up to most_local_ranks
  std::optional<int> threads{};             // threads of this process, up to as many
  std::string comm{};                       // the name of one of the program's communicators; empty: its first
  int nodes = 1;                            // machines; this program is started once on each
  int node_rank = 0;                        // which of them this is
  std::optional<int> processes_per_node{};  // as `ranks`, on each of several machines
  std::string address{};                    // of machine 0, where there are several
  int port = 0;                             // free at that address
  std::string rendezvous{};                 // where the ranks meet, a URL; empty: as PDP_RENDEZVOUS says, if it does

  /// Processes of the whole job, where it is to consist of processes.
  [[nodiscard]] std::optional<int> processes() const {
    if (const std::optional<int> here = local_processes()) return nodes * *here;
    return std::nullopt;
  }
  [[nodiscard]] std::optional<int> local_processes() const {
    if (ranks) return ranks;
    return processes_per_node || nodes == 1 ? processes_per_node : 1;
  }
  /// Whether it is said which ranks there are: by these options, or by another process that has started this one as a rank.
  [[nodiscard]] bool ranks_are_given(const Variables& variable = environment) const;
  void check() const;

  /// Finds --ranks N, --threads N, --comm NAME and --rendezvous URL on a command line, also as --ranks=N, and takes no notice of anything
  /// else.
  static Options from(int argc, const char* const* argv);
  /// The same into these options. If it throws, they keep what was found before.
  void read(int argc, const char* const* argv);
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/source/options.hpp>
#endif
