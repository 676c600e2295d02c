#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/backend/work_handle.hpp>
#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/separate_compilation.hpp>

/// Gloo's own type: a group of connected ranks.
namespace gloo {
class Context;
}

namespace pdp::comm {

namespace gloo {
class Call;
class Lane;
class World;
// The functions that WorkHandle calls.
bool is_done(Lane& lane, Call& call);
void finish(Lane& lane, Call& call);
void drop(Lane& lane, Call& call) noexcept;
}  // namespace gloo

/// One rank of a group that Gloo connects. Gloo's collectives block their caller until they are complete. A blocking collective runs on the
/// caller's thread if the group has no other collective in flight. All other collectives run on a thread of their group, one after another.
/// Messages need no thread. Defined in pdp/comm/gloo/source.hpp.
class GlooCalls {
 public:
  static constexpr bool fails_fast = true;

  using Work = WorkHandle<gloo::Lane, gloo::Call>;

  /// Constructs this rank of the group of all ranks.
  explicit GlooCalls(std::shared_ptr<gloo::World> world);
  GlooCalls(GlooCalls&&) noexcept;
  GlooCalls& operator=(GlooCalls&&) noexcept;
  ~GlooCalls();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] Duration deadline() const;
  void deadline(Duration duration);
  /// Does nothing: Gloo advances calls in flight on its own threads.
  void progress();
  void abort(const std::string& reason);

  Work start(const Request& request);
  /// Returns a group that uses the connections of the world.
  [[nodiscard]] GlooCalls split(int color, int key);

 private:
  explicit GlooCalls(std::unique_ptr<gloo::Lane> lane);

  std::unique_ptr<gloo::Lane> lane_;
};

/// Ranks that are processes, connected by Gloo over TCP. For programs that already use Gloo, and for comparisons. A program links CMake's
/// target pdp::gloo, or Gloo and libcrypto if it is built without CMake.
class Gloo : public BasicCommunicator<GlooCalls> {
 public:
  /// The name for the command line: --comm gloo.
  static constexpr std::string_view name{"gloo"};

  /// Connects the ranks of a context that the program already has. Every rank of the context must call this. pdp makes connections of its
  /// own, so the program may go on using the context. Throws ConfigError if the context is not connected over TCP, PeerLost if connecting
  /// fails.
  explicit Gloo(const std::shared_ptr<::gloo::Context>& context);
  Gloo(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Gloo split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store and connects to them. Throws Timeout, which names the missing ranks, if they do not come
  /// before the deadline.
  static Gloo connect(StoreView store, int rank, int size, TimePoint deadline);
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_GLOO
#include <pdp/comm/gloo/source.hpp>
#endif
#ifndef PDP_SEPARATE_LAUNCH
#include <pdp/launch/start/source.hpp>
#endif
