#pragma once

#include <cstdint>
#include <optional>

#include <pdp/launch/environment.hpp>
#include <pdp/launch/options.hpp>

namespace pdp::launch {

/// What a process does for its job.
struct Start {
  enum class Kind : std::uint8_t {
    rank,       // it is one, the one at `place`
    threads,    // its ranks are threads of it, as the options ask for
    processes,  // its ranks are processes that it starts
  };

  Kind kind = Kind::rank;
  Place place{};

  static Start from(const Options& options, const Variables& variable);
};

/// Others who have started this process as a rank of theirs (see Place::given) win. Throws UsageError where options and variables
/// contradict themselves or each other.
inline Start Start::from(const Options& options, const Variables& variable) {
  options.check();
  if (!Place::given(variable)) {
    if (options.threads) return {Kind::threads, {}};
    if (options.processes()) return {Kind::processes, {}};
    return {Kind::rank, Place::from(variable)};
  }
  const Place place = Place::from(variable);
  const auto refuse = [&](int wanted, const char* what, const char* question) {
    throw UsageError{text("the command line asks for ", wanted, what, ", but this process is one of ", place.size,
                          " ranks that others have started (WORLD_SIZE, or what srun or mpirun sets)", question)};
  };
  if (const std::optional<int> wanted = options.processes(); wanted && *wanted != place.size)
    refuse(*wanted, " ranks", "; who starts the ranks?");
  if (options.threads) refuse(*options.threads, " threads", "");
  return {Kind::rank, place};
}

}  // namespace pdp::launch
