#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <pdp/comm/join/store.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/start/start.hpp>

/// The start of ranks that are processes, for every backend. Defined in pdp/launch/start/source.hpp, which the header of every backend that
/// connects processes includes (see pdp/core/separate_compilation.hpp).
namespace pdp::launch {

/// Calls Start::from with the environment of this process.
Start start_from_environment(const Options& options, const Connections& known);

/// Starts the processes that the options ask for on this machine, each with this program's own command line, and waits until the last one
/// has ended. Returns the job's exit code. Throws UsageError or ConfigError if they cannot be started.
int run_processes(const Options& options);

/// A rank's connection to the store of its job, through which the ranks find each other. If this rank hosts the store, it does so until
/// this object is destroyed.
class Rendezvous {
 public:
  /// Hosts the store if place.hosts_store says so, and connects to it. Throws ConfigError if the store's port is taken, UsageError if
  /// nothing authenticates the ranks (see choose_grounds), and Timeout if the store is not reached before the deadline.
  Rendezvous(const JobPlace& place, comm::TimePoint deadline);
  Rendezvous(Rendezvous&&) = delete;
  ~Rendezvous();

  /// Returns a view of the store. The store belongs to this object.
  [[nodiscard]] comm::StoreView store();
  /// Compares the name of the communicator with that of other ranks. Throws ConfigError if they differ.
  void agree_on(std::string_view communicator);
  /// Prints a warning if OpenMP has bound more ranks of this machine to some cores than there are of these cores, although others are free.
  void warn_of_shared_cores();
  /// Tells the other ranks that this one has failed before it joined. Call it in the handler of the exception.
  void fail() noexcept;
  /// Leaves the store. If this rank hosts it, waits until the others have left it or have ended, at most until the deadline.
  void leave(comm::TimePoint deadline);

 private:
  struct Ends;
  std::unique_ptr<Ends> ends_;
};

/// Tells the other ranks of the job that this process cannot join it or start its ranks, if the place of the job's store is known. If this
/// process should have hosted the store, hosts it meanwhile. Call it in the handler of the exception. Takes at most twice time_to_tell (1
/// second), plus the time that the system takes to resolve a name.
void tell_others(const Options& options) noexcept;

}  // namespace pdp::launch
