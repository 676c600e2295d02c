#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/core/copyable.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// An outgoing message. The request must not move, and its bytes must not change, until it is done or the transport has failed.
struct SendRequest {
  Envelope envelope;
  const std::byte* data = nullptr;  // envelope.bytes bytes
  int peer = -1;                    // rank in the world
  std::atomic<bool> done{true};
  SendRequest* next = nullptr;  // for the transport's own queue
};

/// An expected message from a peer. The request must not move until it is done or the transport has failed.
struct ReceiveRequest {
  /// Processes the bytes of a message in the order of arrival, in pieces of whole elements, aligned for the element type.
  using Consume = void (*)(std::byte* into, const std::byte* from, std::size_t bytes);

  Envelope envelope;          // must be equal to the peer's envelope
  std::byte* data = nullptr;  // destination of the message
  Consume consume = nullptr;  // combines into data; if null, the bytes are copied
  std::size_t element = 1;    // bytes of an element
  int peer = -1;              // rank in the world
  bool done = true;
  ReceiveRequest* next = nullptr;  // for the transport's own queue
};

/// A collective that a transport carries out as a whole. The request must not move until it is done or the transport has failed.
struct GroupRequest {
  Envelope envelope;            // equal on all ranks; `bytes` is the size of each rank's values
  std::uint64_t meeting = 0;    // channel of the ranks that share memory; the group of the envelope may also have ranks on other hosts
  std::byte* values = nullptr;  // reduced in place
  Combine combine = nullptr;    // null if there are no values, as in a barrier
  std::size_t element = 1;      // bytes of an element
  bool done = true;
  int missing = -1;  // a rank of the world that the request waits for while it is not done
};

/// Moves messages between the ranks of a world. A transport has no thread of its own: messages move while the owner of the transport calls
/// progress() or wait().
///
/// - Messages between two ranks with equal channel and tag arrive in the order in which they were sent; others may overtake. A message
///   without a receive never blocks another message.
/// - post() clears `done` and never blocks. Once `done` is set, the transport does not access the caller's memory any more.
/// - progress() moves everything that can move at once and returns whether anything moved. wait() sleeps until there may be something to
///   do, or until the given time. Both throw the Failure, once there is one.
/// - If the envelope of a message is not equal to that of its receive, the transport fails with Kind::mismatch and a text from mismatch().
/// - fail() ends the world. It tells every peer that it can reach. Afterwards the transport accesses no request of its owner any more.
///   Later failures are ignored. fail() never throws and never blocks for long.
/// - The destructor sends a goodbye, so that peers do not report this rank as lost. It never hangs.
template <class T>
concept Transport = Movable<T> &&
    requires(T& transport, const T& observed, SendRequest& send, ReceiveRequest& receive, TimePoint until, Failure failure) {
  { observed.rank() } -> std::same_as<int>;
  { observed.size() } -> std::same_as<int>;
  transport.post(send);
  transport.post(receive);
  { transport.progress() } -> std::same_as<bool>;
  transport.wait(until);
  transport.fail(failure);
  { observed.failure() } -> std::same_as<const Failure*>;  // null if there is no failure
};

/// A transport with heartbeats, which a rank sends even while its program computes. A rank is reported as lost if its process is stopped or
/// its machine is out of reach. heartbeat(duration) sets how long a rank may be silent; zero means for ever.
template <class T>
concept KeepsHeartbeat = Transport<T> && requires(T& transport, Duration duration) {
  transport.heartbeat(duration);
};

/// The address by which other ranks of the host open a rank's memory. Its meaning depends on the transport.
struct SharedAddress {
  std::uint64_t space = 0;
  std::uint64_t place = 0;
};

/// The members of a group, as ranks of the world, and the position of this rank among them.
struct GroupPlace {
  std::uint64_t channel = 0;  // of the group
  const std::vector<int>& ranks;
  int rank = 0;
};

/// A transport in which some or all ranks share memory. These ranks carry out some collectives by a shared-memory rendezvous, without
/// messages. Each group has one rendezvous at a time.
///
/// - near(ranks): returns whether these ranks of the world share memory.
/// - share(bytes): returns new, zeroed memory of this rank, which other ranks can open while this rank keeps it. open(address, bytes):
///   opens the memory of another rank.
/// - add_group(place, memories): enables rendezvous of these ranks. `memories`: one memory of board_bytes from each of them, in the order
///   of the group. remove_group(channel) undoes add_group(). If all ranks of the world share memory, the group of all ranks needs neither
///   call.
template <class T>
concept GroupTransport = Transport<T> &&
    requires(T& transport, const T& observed, GroupRequest& request, const GroupPlace& place, SharedAddress address, std::size_t bytes,
             std::uint64_t channel, const std::vector<int>& ranks, std::vector<typename T::Shared> memories) {
  { T::board_bytes } -> std::convertible_to<std::size_t>;
  { observed.near(ranks) } -> std::same_as<bool>;
  transport.post(request);
  { T::share(bytes) } -> std::same_as<typename T::Shared>;
  { T::open(address, bytes) } -> std::same_as<typename T::Shared>;
  { memories.front().address() } -> std::same_as<SharedAddress>;
  transport.add_group(place, std::move(memories));
  transport.remove_group(channel);
};
/// Returns whether a shared-memory rendezvous carries out this verb.
constexpr bool met_for(Verb verb) { return verb == Verb::all_reduce || verb == Verb::barrier; }

/// A transport over several hosts. host_of(rank) returns a number for the rank's host, equal on all ranks.
template <class T>
concept HostTransport = GroupTransport<T> && requires(const T& observed, int rank) {
  { observed.host_of(rank) } -> std::same_as<int>;
};

/// A transport that also provides memory for values of the program, which all ranks of a group can access (an arena). add_arena() returns
/// the Region of this rank's own part. `number`: equal on all ranks of the group; differs from that of every other arena. populate()
/// requests all pages of a memory at once.
template <class T>
concept ArenaTransport = GroupTransport<T> &&
    requires(T& transport, const GroupPlace& place, std::uint64_t number, std::vector<typename T::Shared> memories) {
  memories.front().populate();
  { transport.add_arena(place, number, std::move(memories)) } -> std::same_as<Region>;
};

}  // namespace pdp::comm
