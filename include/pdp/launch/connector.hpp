#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string_view>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/comm/traits.hpp>
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

/// The properties of a communicator that run() uses besides its connection, independent of its type. The functions of a store are null for
/// a communicator that needs none, so that a program without such communicators does not link them.
struct Connector {
  std::string_view name{};                                               // for --comm; empty: none
  std::string_view launcher{};                                           // the command that starts its ranks; empty: none
  void (*end_job)(int exit_code) = nullptr;                              // ends the other ranks, if it has a launcher
  Start (*start)(const Options& options, const Connections&) = nullptr;  // start_from_environment()
  int (*run_processes)(const Options& options) = nullptr;
  void (*tell_others)(const Options& options) noexcept = nullptr;
};

template <class Comm>
constexpr Connector connector_of() {
  Connector all{.name = comm::traits_of<Comm>.name};
  if constexpr (HasLauncher<Comm>) {
    all.launcher = Comm::launcher;
    all.end_job = [](int exit_code) { Comm::end_job(exit_code); };
  }
  if constexpr (ConnectsThroughStore<Comm>) {
    all.start = &start_from_environment;
    all.run_processes = &launch::run_processes;
    all.tell_others = &launch::tell_others;
  }
  return all;
}

/// The communicators of a program, in order.
template <class... Comms>
struct ProgramConnectors {
  static_assert(sizeof...(Comms) == 1 || (comm::Named<Comms> && ...),
                "pdp: if a program has several communicators, each needs a name for --comm: a member "
                "static constexpr std::string_view name");
  static constexpr std::array<Connector, sizeof...(Comms)> all{connector_of<Comms>()...};
  /// The name of the communicator that connects threads. A communicator of devices does that itself.
  static constexpr std::string_view of_threads =
      sizeof...(Comms) == 1 && (comm::HasDeviceBuffers<Comms> && ...) ? all.front().name : comm::Thread::name;
};

/// Sets how long a call may wait, if the communicator has deadlines. Nothing: its default.
template <class Comm>
void set_deadline(Comm& world, const std::optional<comm::Duration>& deadline) {
  if constexpr (requires { world.deadline(*deadline); })
    if (deadline) world.deadline(*deadline);
}

}  // namespace detail

}  // namespace pdp::launch
