#pragma once

#include <array>
#include <concepts>
#include <string_view>
#include <utility>

#include <pdp/comm/communicator.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/processes.hpp>
#include <pdp/launch/start.hpp>

namespace pdp::launch {

/// A communicator whose ranks are processes that find each other through a store. No rank may need the store any more once connect() has
/// returned on rank 0, which may host it.
template <class Comm>
concept ConnectsThroughStore = requires(comm::StoreView store, comm::TimePoint deadline) {
  { Comm::connect(store, 0, 1, deadline) } -> std::same_as<Comm>;
};

namespace detail {

/// A program that links pdp::launch has this compiled there.
template <class... Comms>
Start start(const Options& options) {
  static_assert(sizeof...(Comms) == 1 || (comm::Named<Comms> && ...),
                "pdp: where a program has several communicators, each needs a name by which --comm chooses it: a member "
                "static constexpr std::string_view name");
  static constexpr std::array<std::string_view, sizeof...(Comms)> names{comm::name_of<Comms>()...};
  if constexpr ((ConnectsThroughStore<Comms> || ...))
    return start_from_environment(options, names);
  else
    return Start::from(options, names, environment);
}

}  // namespace detail

/// Joins the job that others have started this process for, at its place there.
///
/// Throws ConfigError where the store's port is taken, Timeout where the job is not complete before place.timeout is over.
template <class Comm>
[[nodiscard]] Comm join(const Place& place) {
  if constexpr (ConnectsThroughStore<Comm>) {
    const comm::TimePoint deadline = comm::Clock::now() + place.timeout;
    Rendezvous rendezvous{place, deadline};
    return Comm::connect(rendezvous.store(), place.rank, place.size, deadline);
  } else {
    if (place.size > 1)
      throw UsageError{text("a job of ", place.size,
                            " processes was started, but the ranks of this program's communicator live in one process; use --threads")};
    if constexpr (std::default_initializable<Comm>)
      return Comm{};
    else
      return std::move(Comm::world(1).front());
  }
}

/// Joins the job that the environment describes (see Place::from), for programs with a main and a command line of their own:
///
///     auto world = pdp::launch::join<pdp::comm::Tcp>();
///
/// The rank fails where it throws: its caller ends the process with an exit code that is not 0, and the others throw PeerLost.
template <class Comm>
[[nodiscard]] Comm join() {
  return join<Comm>(detail::start<Comm>(Options{}).place);
}

}  // namespace pdp::launch
