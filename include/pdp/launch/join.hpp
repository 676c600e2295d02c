#pragma once

#include <array>
#include <concepts>
#include <string_view>
#include <utility>

#include <pdp/comm/communicator.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/file_size_limit.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/start/processes.hpp>
#include <pdp/launch/start/start.hpp>

namespace pdp::launch {

/// A communicator that connects processes through a store. A rank may need the store until its own connect() has returned. No rank's
/// connect() may return before all ranks have reached the store.
template <class Comm>
concept ConnectsThroughStore = requires(comm::StoreView store, comm::TimePoint deadline) {
  { Comm::connect(store, 0, 1, deadline) } -> std::same_as<Comm>;
};

/// A communicator that gives each rank a device of its machine, by the rank's number on that machine.
template <class Comm>
concept ConnectsByLocalRank = ConnectsThroughStore<Comm> && requires(comm::StoreView store, comm::TimePoint deadline) {
  { Comm::connect(store, 0, 1, deadline, typename Comm::Options{.local_rank = 0}) } -> std::same_as<Comm>;
};

/// A communicator over a library that connects processes itself and has a launcher to start them, such as MPI.
template <class Comm>
concept HasLauncher = comm::Named<Comm> && requires(int exit_code) {
  { Comm::start() } -> std::same_as<Comm>;
  { Comm::launcher } -> std::convertible_to<std::string_view>;  // a command, as in mpirun -n 4 program
  Comm::end_job(exit_code);                                     // returns only if this rank is alone
};

namespace detail {

/// Decides what this process does for its job (see Start::from), in a program with these communicators.
template <class... Comms>
Start start(const Options& options) {
  static_assert(sizeof...(Comms) == 1 || (comm::Named<Comms> && ...),
                "pdp: if a program has several communicators, each needs a name for --comm: a member "
                "static constexpr std::string_view name");
  static constexpr std::array<std::string_view, sizeof...(Comms)> names{comm::traits_of<Comms>.name...};
  // Ranks that are threads are connected by comm::Thread, except that a communicator of devices connects them itself.
  constexpr bool of_devices = sizeof...(Comms) == 1 && (comm::HasDeviceBuffers<Comms> && ...);
  const Connections known{names, of_devices ? names.front() : comm::Thread::name};
  if constexpr ((HasLauncher<Comms> || ...)) {
    options.check();
    if (std::array{HasLauncher<Comms>...}[Start::choose(options, known)])
      return Start::from(options, known, environment, /*has_store*/ false);
  }
  if constexpr ((ConnectsThroughStore<Comms> || ...))
    return start_from_environment(options, known);
  else
    return Start::from(options, known, environment);
}

template <class Comm>
void set_deadline(Comm& world, const std::optional<comm::Duration>& deadline) {
  if constexpr (requires { world.deadline(*deadline); })
    if (deadline) world.deadline(*deadline);
}

}  // namespace detail

/// Joins a job as the rank that `place` describes, and returns the communicator of its world.
///
/// Throws ConfigError if the store's port is taken, and Timeout if the job is not complete within place.timeout. Throws UsageError if the
/// communicator's own library reports another rank or size than the environment, or if the job has several processes and this communicator
/// connects only ranks of one process.
template <class Comm>
[[nodiscard]] Comm join(const JobPlace& place) {
  open_standard_streams();
  report_file_size_limit();
  if constexpr (HasLauncher<Comm>) {
    Comm world = Comm::start();
    // If the environment does not know the launcher, there is nothing to compare.
    if ((place.rank != world.rank() || place.size != world.size()) && JobPlace::given(environment))
      throw UsageError{text("the environment says that this process is rank ", place.rank, " of ", place.size, ", but ",
                            comm::traits_of<Comm>.name, " says rank ", world.rank(), " of ", world.size(), "; start it with the ",
                            Comm::launcher, " of the library that it was built with, and without RANK and WORLD_SIZE")};
    detail::set_deadline(world, place.deadline);
    return world;
  } else if constexpr (ConnectsThroughStore<Comm>) {
    const comm::TimePoint deadline = comm::Clock::now() + place.timeout;
    Rendezvous rendezvous{place, deadline};
    Comm world = [&] {
      try {
        rendezvous.agree_on(comm::traits_of<Comm>.name);
        rendezvous.warn_of_shared_cores();
        if constexpr (ConnectsByLocalRank<Comm>)
          return Comm::connect(rendezvous.store(), place.rank, place.size, deadline,
                               typename Comm::Options{.local_rank = place.local_rank});
        else
          return Comm::connect(rendezvous.store(), place.rank, place.size, deadline);
      } catch (...) {
        rendezvous.fail();
        throw;
      }
    }();
    if constexpr (requires { world.heartbeat(place.heartbeat); }) world.heartbeat(place.heartbeat);
    detail::set_deadline(world, place.deadline);
    rendezvous.leave(deadline);
    return world;
  } else {
    if (place.size > 1)
      throw UsageError{text("a job of ", place.size,
                            " processes was started, but the ranks of this program's communicator run in one process; use --threads")};
    if constexpr (std::default_initializable<Comm>)
      return Comm{};
    else
      return std::move(Comm::world(1).front());
  }
}

/// Joins the job that the environment describes (see JobPlace::from), in a program with its own main and command line:
///
///     auto world = pdp::launch::join<pdp::comm::Tcp>();
///
/// If it throws, the rank has failed. The caller must then end the process with a nonzero exit code; the other ranks throw PeerLost.
template <class Comm>
[[nodiscard]] Comm join() {
  const JobPlace place = [] {
    try {
      return detail::start<Comm>(Options{}).place;
    } catch (...) {
      if constexpr (ConnectsThroughStore<Comm>) tell_others(Options{});
      throw;
    }
  }();
  return join<Comm>(place);
}

}  // namespace pdp::launch
