#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <pdp/comm/join/store.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/start/start.hpp>

/// What ranks that are processes need, whatever connects them. Defined in pdp/launch/start/source.hpp, which the
/// header of every backend that connects processes includes (see pdp/core/separate_compilation.hpp).
namespace pdp::launch {

/// Start::from this process's environment.
Start start_from_environment(const Options& options, const Connections& known);

/// Starts the processes that the options ask for on this machine, each with this program's own command line, and stays until the last one
/// has ended. Returns the job's exit code. Throws where they cannot be started.
int run_processes(const Options& options);

/// Where the ranks of a job meet: its store, seen from one rank, which may also host it for as long as this lives.
class Rendezvous {
 public:
  /// Throws ConfigError where the store's port is taken, Timeout where the store is not reached before the deadline.
  Rendezvous(const JobPlace& place, comm::TimePoint deadline);
  Rendezvous(Rendezvous&&) = delete;
  ~Rendezvous();

  [[nodiscard]] comm::StoreView store();
  /// Compares what connects the ranks, by its name, with what other ranks have said. Throws ConfigError if it differs.
  void agree_on(std::string_view communicator);
  /// Prints a line if OpenMP has bound more ranks of this machine to the same cores than there are of these, and others are free.
  void warn_of_shared_cores();
  /// Tells the other ranks that this one has failed before it has joined. To be called where the exception is handled.
  void fail() noexcept;
  /// This rank needs the store no more. Who hosts it waits for the others to say so, or to end, but not beyond the deadline.
  void leave(comm::TimePoint deadline);

 private:
  struct Ends;
  std::unique_ptr<Ends> ends_;
};

/// Tells the other ranks of the job that this process cannot even try to join it, or start its ranks, if it knows where they meet. Hosts
/// the job's store meanwhile if the others look for it here. To be called where the exception is handled. Takes twice time_to_tell at most,
/// and what the system may take to resolve a name.
void tell_others(const Options& options) noexcept;

}  // namespace pdp::launch
