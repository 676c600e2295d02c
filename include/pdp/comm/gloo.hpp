#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/backend/work_handle.hpp>
#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/separate_compilation.hpp>

/// The library's own: a group of connected ranks.
namespace gloo {
class Context;
}

namespace pdp::comm {

namespace gloo {
class Call;
class Lane;
class World;
// What a WorkHandle does with its call.
bool is_done(Lane& lane, Call& call);
void finish(Lane& lane, Call& call);
void drop(Lane& lane, Call& call) noexcept;
}  // namespace gloo

/// One rank of a group that Gloo connects. Gloo's collectives keep their caller until they are complete: blocking calls run on the caller's
/// thread, asynchronous ones on a thread of their group, one after another. Defined in pdp/comm/gloo/source.hpp.
class GlooCalls {
 public:
  static constexpr bool fails_fast = true;

  using Work = WorkHandle<gloo::Lane, gloo::Call>;

  /// All ranks of a world.
  explicit GlooCalls(std::shared_ptr<gloo::World> world);
  GlooCalls(GlooCalls&&) noexcept;
  GlooCalls& operator=(GlooCalls&&) noexcept;
  ~GlooCalls();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] Duration deadline() const;
  void deadline(Duration duration);
  /// Nothing to do: Gloo moves what is in flight on threads of its own.
  void progress();
  void abort(const std::string& reason);

  Work start(const Request& request);
  /// Over the connections of the world.
  [[nodiscard]] GlooCalls split(int color, int key);

 private:
  explicit GlooCalls(std::unique_ptr<gloo::Lane> lane);

  std::unique_ptr<gloo::Lane> lane_;
};

/// Ranks that are processes, connected by Gloo over TCP: for programs that have Gloo already, or want to compare. A program links CMake's
/// pdp::gloo, or Gloo and libcrypto.
class Gloo : public BasicCommunicator<GlooCalls> {
 public:
  /// What a command line calls it: --comm gloo.
  static constexpr std::string_view name{"gloo"};

  /// The ranks of a context that a host program has. They get connections of their own beside it, so the program may go on using it. Every
  /// rank of the context must make this call. Throws ConfigError where the context is not connected, PeerLost where that fails.
  explicit Gloo(const std::shared_ptr<::gloo::Context>& context);
  Gloo(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Gloo split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store. Throws Timeout, which names the missing ranks, when they are not there before the deadline.
  static Gloo connect(StoreView store, int rank, int size, TimePoint deadline);
};

static_assert(Communicator<Gloo> && HasReduceScatter<Gloo> && FailsFast<Gloo>);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_GLOO
#include <pdp/comm/gloo/source.hpp>
#endif
#ifndef PDP_SEPARATE_LAUNCH
#include <pdp/launch/start/source.hpp>
#endif
