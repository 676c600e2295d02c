#pragma once

/// Definitions for pdp/launch/options.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/net/host_name.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/program_flags.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/start/rendezvous_url.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

PDP_INLINE bool Options::ranks_are_given(const Variables& variable) const {
  return ranks || threads || processes_per_node || nodes > 1 || JobPlace::given(variable);
}

PDP_INLINE void Options::check() const {
  const auto check_count = [](const char* name, std::optional<int> number, int most) {
    if (number && (*number < 1 || *number > most)) throw UsageError{text(name, " must be from 1 to ", most, "; found ", *number)};
  };
  check_count("the number of ranks (--ranks)", ranks, most_local_ranks);
  check_count("the number of threads (--threads)", threads, most_local_ranks);
  check_count("the number of processes on each machine", processes_per_node, most_local_ranks);
  check_count("the number of machines", nodes, most_ranks);
  if (restarts < 0 || restarts > most_restarts)
    throw UsageError{text("the number of restarts (--restarts) must be from 0 to ", most_restarts, "; found ", restarts)};
  if (restarts > 0 && (threads || nodes > 1))
    throw UsageError{text("--restarts ", restarts, " starts processes of one machine again, and cannot be combined with ",
                          threads ? "threads" : "several machines; there the cluster's launcher restarts the ranks")};
  if (ranks && threads)
    throw UsageError{text("--ranks ", *ranks, " and --threads ", *threads, " exclude each other: ranks are processes or threads")};
  if (ranks && (nodes > 1 || processes_per_node))
    throw UsageError{text("--ranks ", *ranks,
                          " starts all ranks on this machine, and cannot be combined with a number of machines or of processes on each")};
  if (threads && (nodes > 1 || processes_per_node))
    throw UsageError{
        text("--threads ", *threads,
             " makes all ranks threads of one process, and cannot be combined with a number of machines or of processes on each")};
  if (node_rank < 0 || node_rank >= nodes)
    throw UsageError{text("this machine's number is ", node_rank, ", but there are ", nodes,
                          " machines; they count from 0, so the largest is ", nodes - 1)};
  const bool placed = !rendezvous.empty() && RendezvousUrl::parse("--rendezvous", rendezvous).kind != RendezvousUrl::Kind::environment;
  if (placed && threads)
    throw UsageError{text("--threads ", *threads, " makes all ranks threads of one process, and cannot be combined with --rendezvous ",
                          in_quotes(rendezvous))};
  if (nodes == 1) return;
  if (nodes > most_ranks / *local_processes())
    throw UsageError{text(nodes, " machines with ", *local_processes(), " processes each exceed the maximum of ", most_ranks, " ranks")};
  if (placed && !address.empty())
    throw UsageError{text("--rendezvous ", in_quotes(rendezvous), " and the address ", in_quotes(address),
                          " of machine 0 exclude each other: both set the rendezvous; leave one of the two out")};
  if (placed) return;
  if (address.empty()) throw UsageError{text("a job on ", nodes, " machines needs the address of machine 0, the same on all of them")};
  check_host("the address of machine 0", address);
  if (port < 1 || port > 65535)
    throw UsageError{text("a job on ", nodes, " machines needs a free port at ", address, ", from 1 to 65535; found ", port)};
}

PDP_INLINE Options Options::from(int argc, const char* const* argv, const ProgramFlags& program) {
  Options options;
  options.read(argc, argv, program);
  return options;
}

PDP_INLINE Arguments Options::read(int argc, const char* const* argv, const ProgramFlags& program) {
  Arguments own;
  int i = 1;
  for (; i < argc && std::string_view{argv[i]} != "--"; ++i) {
    const std::string_view word = argv[i];
    // Returns the value of the flag if `word` is that flag.
    const auto value = [&](std::string_view flag, const char* what, const char* example) -> std::optional<std::string_view> {
      if (!word.starts_with(flag) || (word.size() > flag.size() && word[flag.size()] != '=')) return std::nullopt;
      const bool apart = word.size() == flag.size();
      const std::string_view found = !apart ? word.substr(flag.size() + 1) : i + 1 < argc ? argv[++i] : "";
      if (found.empty()) throw UsageError{text(flag, " must be followed by ", what, ", as in ", flag, ' ', example)};
      return found;
    };
    if (const auto number = value("--ranks", "a number", "4"))
      ranks = parse_number("--ranks", *number, 1, most_local_ranks);
    else if (const auto count = value("--threads", "a number", "4"))
      threads = parse_number("--threads", *count, 1, most_local_ranks);
    else if (const auto again = value("--restarts", "a number", "3"))
      restarts = parse_number("--restarts", *again, 0, most_restarts);
    else if (const auto name = value("--comm", "the name of a communicator", "tcp"))
      comm = *name;
    else if (const auto url = value("--rendezvous", "a URL", "tcp://10.0.0.1:29500"))
      rendezvous = *url;
    else if (const std::string_view flag = intended_flag(word, program); !flag.empty())
      throw UsageError{
          text(in_quotes(word), " is no flag of this program; did you mean ", flag, "? Put -- before the program's own arguments if not")};
    else
      own.emplace_back(word);
  }
  own.insert(own.end(), argv + std::min(i + 1, argc), argv + argc);
  check();
  return own;
}

}  // namespace pdp::launch
