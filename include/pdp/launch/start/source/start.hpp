#pragma once

/// Definitions for pdp/launch/start/start.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/start/environment.hpp>
#include <pdp/launch/start/launcher_variables.hpp>
#include <pdp/launch/start/start.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

PDP_INLINE std::size_t Start::choose(const Options& options, const Connections& known) {
  const std::string& wanted = options.comm;
  if (wanted.empty() || (options.threads && wanted == known.of_threads)) return 0;
  if (options.threads)
    throw UsageError{text("--threads ", *options.threads, " and --comm ", in_quotes(wanted), " exclude each other: threads use --comm ",
                          known.of_threads, "; leave one of the two out")};
  const auto found = std::ranges::find(known.names, wanted);
  if (found != known.names.end()) return as_size(found - known.names.begin());
  if (wanted == known.of_threads)
    throw UsageError{text("--comm ", wanted, " connects threads of one process; pass --threads N to set their number")};
  std::string names;
  for (std::size_t i = 0; i < known.names.size(); ++i)
    names += text(i == 0 ? "" : i + 1 == known.names.size() ? " and " : ", ", known.names[i]);
  throw UsageError{text("--comm ", in_quotes(wanted), ": this program has ",
                        names.empty() ? "a single communicator without a name; omit --comm" : names)};
}

PDP_INLINE Start Start::from(const Options& options, const Connections& known, const Variables& variable, bool has_store) {
  options.check();
  const std::size_t comm = choose(options, known);
  if (!JobPlace::given(variable)) {
    if (has_store && options.nodes == 1 && !detail::find_starter(variable)) refuse_rank_without_size(variable);
    JobPlace here;
    here.deadline = JobPlace::deadline_from(variable);
    if (options.threads) return {Kind::threads, here, comm};
    if (options.processes()) return {Kind::processes, {}, comm};
    return {Kind::rank, JobPlace::from(variable, options.rendezvous), comm};
  }
  const JobPlace place = JobPlace::from(variable, options.rendezvous, has_store);
  const auto refuse = [&](int wanted, const char* what, const char* question) {
    throw UsageError{text("the command line requests ", wanted, what, ", but a launcher has started this process as one of ", place.size,
                          " ranks (WORLD_SIZE, or the variables of srun or mpirun)", question)};
  };
  if (const std::optional<int> wanted = options.processes(); wanted && *wanted != place.size)
    refuse(*wanted, " ranks", "; use only one of the two");
  if (options.threads) refuse(*options.threads, " threads", "; use only one of the two");
  return {Kind::rank, place, comm};
}

}  // namespace pdp::launch
