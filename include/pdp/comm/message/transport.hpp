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
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// A message on its way out. It stays where it is, and its bytes stay as they are, until it is done or the transport has failed.
struct SendRequest {
  Envelope envelope;
  const std::byte* data = nullptr;  // envelope.bytes of them
  int peer = -1;                    // rank in the world
  std::atomic<bool> done{true};
  SendRequest* next = nullptr;  // for the transport's own queue
};

/// A message expected from a peer. It stays where it is until it is done or the transport has failed.
struct ReceiveRequest {
  /// Takes the bytes in the order in which they arrive, in pieces of whole elements that are aligned for them.
  using Consume = void (*)(std::byte* into, const std::byte* from, std::size_t bytes);

  Envelope envelope;          // what the peer must have sent, to the letter
  std::byte* data = nullptr;  // where it belongs
  Consume consume = nullptr;  // combines into data; copies when null
  std::size_t element = 1;    // bytes of an element
  int peer = -1;              // rank in the world
  bool done = true;
  ReceiveRequest* next = nullptr;  // for the transport's own queue
};

/// A collective that a transport carries out as a whole. It stays where it is until it is done or the transport has failed.
struct GroupRequest {
  Envelope envelope;            // the same on all ranks; `bytes` are those of each rank's values
  std::uint64_t meeting = 0;    // the channel of the ranks that meet; the envelope's group may have others as well, on other hosts
  std::byte* values = nullptr;  // in place
  Combine combine = nullptr;    // null: nothing travels, as in a barrier
  std::size_t element = 1;      // bytes of one
  bool done = true;
  int missing = -1;  // a rank of the world that it waits for, while it is not done
};

/// Moves messages between the ranks of a world, without a thread of its own: they move while the owner calls progress() or wait().
///
/// - Messages of one pair with one channel and tag arrive in the order in which they were sent; others may overtake. A message that nobody
///   expects yet never holds up another.
/// - post() clears `done`, never blocks and never moves bytes of the caller's memory after `done` is set.
/// - progress() moves what can be moved at once and says whether anything did. wait() sleeps until there may be something to do, or until
///   the given time. Both throw the Failure, once there is one.
/// - When a message meets a receive whose envelope is not equal to its own, the transport fails with Kind::mismatch and a text from
///   mismatch().
/// - fail() ends the world: it tells every peer that can be told, and afterwards the transport touches no request of its owner any more.
///   The first failure stays. It never throws and never blocks for long.
/// - The destructor says goodbye, so that peers do not take it for a loss, and never hangs.
template <class T>
concept Transport = std::movable<T> &&
    requires(T& transport, const T& observed, SendRequest& send, ReceiveRequest& receive, TimePoint until, Failure failure) {
  { observed.rank() } -> std::same_as<int>;
  { observed.size() } -> std::same_as<int>;
  transport.post(send);
  transport.post(receive);
  { transport.progress() } -> std::same_as<bool>;
  transport.wait(until);
  transport.fail(failure);
  { observed.failure() } -> std::same_as<const Failure*>;  // null while all is well
};

/// One whose ranks give signs of life while their programs do something else, so that a rank whose process is stopped, or whose machine is
/// out of reach, is found to be gone. heartbeat(duration): for how long it may give none; zero: for ever.
template <class T>
concept KeepsHeartbeat = Transport<T> && requires(T& transport, Duration duration) {
  transport.heartbeat(duration);
};

/// By which the other ranks of a host find memory of one of them, in the words of their transport.
struct SharedAddress {
  std::uint64_t space = 0;
  std::uint64_t place = 0;
};

/// Ranks of the world that make a group, and which of them this is.
struct GroupPlace {
  std::uint64_t channel = 0;  // of the group
  const std::vector<int>& ranks;
  int rank = 0;
};

/// A transport some or all of whose ranks have memory in common, so that they need no messages for some collectives: they meet. One meeting
/// at a time in each group.
///
/// - near(ranks): whether these ranks of the world share memory.
/// - share(bytes): new memory of this rank's own, zero, and for others to open while it is kept. open(address, bytes): that of another one.
/// - add_group(place, memories): from then on these ranks can meet. `memories`: board_bytes of each of them, in the order of the group.
///   remove_group(channel) ends that. A world whose ranks are all near needs neither.
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
/// What a meeting is for.
constexpr bool met_for(Verb verb) { return verb == Verb::all_reduce || verb == Verb::barrier; }

/// One over several hosts. host_of(rank): a number for each host, the same on all ranks.
template <class T>
concept HostTransport = GroupTransport<T> && requires(const T& observed, int rank) {
  { observed.host_of(rank) } -> std::same_as<int>;
};

/// One that also has memory for values of its users, which all ranks of a group see. `number`: the same on all ranks, and of no other such
/// memory. The Region is this rank's own part. populate(): the pages of a memory are wanted at once.
template <class T>
concept ArenaTransport = GroupTransport<T> &&
    requires(T& transport, const GroupPlace& place, std::uint64_t number, std::vector<typename T::Shared> memories) {
  memories.front().populate();
  { transport.add_arena(place, number, std::move(memories)) } -> std::same_as<Region>;
};

}  // namespace pdp::comm
