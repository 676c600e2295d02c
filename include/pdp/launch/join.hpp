#pragma once

#include <concepts>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/traits.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/file_size_limit.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/launch/connector.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/process/job.hpp>
#include <pdp/launch/start/processes.hpp>

namespace pdp::launch {

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
      using Connectors = detail::ProgramConnectors<Comm>;
      return detail::start(Options{}, Connectors::all, Connectors::of_threads).place;
    } catch (...) {
      if constexpr (ConnectsThroughStore<Comm>) tell_others(Options{});
      throw;
    }
  }();
  return join<Comm>(place);
}

}  // namespace pdp::launch
