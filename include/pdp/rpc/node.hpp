#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/core/error.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/encode.hpp>
#include <pdp/rpc/call/functions.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/future.hpp>
#include <pdp/rpc/remote.hpp>
#include <pdp/rpc/statistics.hpp>

namespace pdp::rpc {

struct NodeOptions {
  /// For how long a rank polls for messages, after the last one, before it sleeps. Polling makes calls faster and keeps a core busy.
  comm::Duration polling{};
  /// Writes a timeline of the calls of all ranks to this file at the end of the job, on the master: a picture if the name ends in .svg, a
  /// Chrome trace if it ends in .json. Empty: none. Must be equal on all ranks.
  std::string timeline{};
};

/// One rank of a job with remote objects. Each rank has a name. Rank 0 is the master: it runs the program, and the other ranks, the
/// workers, run the calls that they get. Every call names a function by a template argument, as in node.sync<&square>("worker1", 3).
///
/// A rank runs the calls of others while it waits: in serve(), sync() and get(). Use a Node and its handles on one thread.
class Node {
 public:
  /// Makes the node of this rank. Every rank of the world must call it, with the same names: one for each rank, in the order of ranks.
  /// Throws ConfigError if a name is empty or occurs twice, or if there is another number of ranks. Borrows the world, which must outlive
  /// the node. Remote calls use a group of their own, so the program can use the world for its own messages.
  template <class Comm>
  Node(Comm& world, std::vector<std::string> names, const NodeOptions& options = {})
      : core_{std::make_shared<Core>(comm::Any::borrow(world).split(0, world.rank()), std::move(names))} {
    core_->polling(options.polling);
    if (!options.timeline.empty()) core_->record(options.timeline);
  }

  [[nodiscard]] int rank() const { return core_->rank(); }
  [[nodiscard]] int size() const { return core_->size(); }
  /// Returns the name of this rank, or of another one.
  [[nodiscard]] const std::string& name() const { return core_->name(rank()); }
  [[nodiscard]] const std::string& name(int rank) const { return core_->name(rank); }
  /// Returns the rank with this name. Throws ConfigError, which lists the names, if there is none.
  [[nodiscard]] int rank_of(std::string_view name) const { return core_->find(name); }

  /// Constructs an object of type T on a rank and returns a reference to it at once. The arguments are copied or moved there. An error of
  /// the constructor is thrown by the calls of the object.
  template <class T, class... A>
  [[nodiscard]] Remote<T> remote(std::string_view worker, A&&... arguments) {
    static_assert(
        std::is_constructible_v<T, detail::Copy<A>...> || requires { T{std::declval<detail::Copy<A>>()...}; },
        "pdp: the remote object cannot be constructed from copies of these arguments");
    using Entry = ConstructorEntry<T, detail::Copy<A>...>;
    static_cast<void>(Entry::added);
    const int owner = core_->find(worker);
    const SlotId slot = core_->new_slot();
    start<std::tuple<detail::Copy<A>...>, false>(owner, Entry::id, Head::Result::reference, slot, std::forward<A>(arguments)...);
    return Remote<T>{std::make_shared<detail::Reference>(core_, owner, slot, Slot::whole)};
  }

  /// Calls a free function on a rank and waits for its result. Throws as Remote::sync().
  template <auto F, class... A>
  auto sync(std::string_view worker, A&&... arguments) {
    using Entry = FunctionEntry<void, F>;
    using R = typename Entry::Types::Returned;
    static_assert(detail::result_travels<R>());
    static_cast<void>(Entry::added);
    const int to = core_->find(worker);
    return detail::wait_for<R>(core_, to, detail::function_name<F>(), [&](Head::Result wants, SlotId result) {
      return start<typename Entry::Types::Parameters, true>(to, Entry::id, wants, result, std::forward<A>(arguments)...);
    });
  }
  /// Starts a call of a free function. See Remote::async().
  template <auto F, class... A>
  auto async(std::string_view worker, A&&... arguments) {
    using Entry = FunctionEntry<void, F>;
    static_assert(detail::result_travels<typename Entry::Types::Returned>());
    static_cast<void>(Entry::added);
    const int to = core_->find(worker);
    const SlotId slot = core_->new_slot();
    start<typename Entry::Types::Parameters, false>(to, Entry::id, Head::Result::value, slot, std::forward<A>(arguments)...);
    return Future<typename Entry::Types::Returned>::expect(core_, slot, to, detail::function_name<F>());
  }
  /// Starts a call of a free function whose result is not needed. See Remote::one_way().
  template <auto F, class... A>
  void one_way(std::string_view worker, A&&... arguments) {
    using Entry = FunctionEntry<void, F>;
    static_cast<void>(Entry::added);
    start<typename Entry::Types::Parameters, false>(core_->find(worker), Entry::id, Head::Result::none, {}, std::forward<A>(arguments)...);
  }

  /// Returns, for each method, the calls that this rank has made and run so far.
  [[nodiscard]] std::vector<MethodStatistics> statistics() const { return core_->statistics(); }

  /// Runs the calls that have arrived, without waiting for more.
  void progress() { core_->progress(); }
  /// Runs calls until the master ends the job. For workers.
  void serve() { core_->serve(); }
  /// Ends the job: waits until all calls of all ranks have ended, and lets the workers return from serve(). For the master. Throws the
  /// error of a one-way call, if there is one. Futures and Remotes of the master should have been destroyed.
  void end() { core_->end(); }
  /// For the library: returns a number that no other object of the job has.
  [[nodiscard]] SlotId new_id() { return core_->new_slot(); }
  /// Ends the job of all ranks with an error. They throw PeerLost with this reason.
  void abort(const std::string& reason) { core_->abort(reason); }

 private:
  template <class Parameters, bool Waits, class... A>
  std::uint64_t start(int to, std::uint64_t method, Head::Result wants, SlotId result, A&&... arguments) {
    core_->raise_pending();
    return detail::Encoder<Parameters>::template encode<Waits>(
        *core_, to, [&](Writer writer) { return core_->call(to, {.result = wants, .method = method, .slot = result}, std::move(writer)); },
        std::forward<A>(arguments)...);
  }

  std::shared_ptr<Core> core_;
};

/// Returns the statistics of a node.
[[nodiscard]] inline std::vector<MethodStatistics> statistics(const Node& node) { return node.statistics(); }

}  // namespace pdp::rpc
