#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;
using TimePoint = Clock::time_point;

/// Why a world has ended before its time. It is told to every rank, and every rank throws it.
struct Failure {
  enum class Kind : unsigned char { lost, mismatch, timeout };

  Kind kind = Kind::lost;
  int rank = -1;  // of the world: the rank that is gone, or that found the fault
  std::string message;

  [[noreturn]] void raise() const {
    switch (kind) {
      case Kind::mismatch:
        throw MismatchedCollective{message};
      case Kind::timeout:
        throw Timeout{message};
      case Kind::lost:
        break;
    }
    throw PeerLost{rank, message};
  }
};

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
/// the
///   given time. Both throw the Failure, once there is one.
/// - When a message meets a receive whose envelope is not equal to its own, the transport fails with Kind::mismatch and a text from
/// mismatch().
/// - fail() ends the world: it tells every peer that can be told, and afterwards the transport touches no request of its owner any more.
/// The first
///   failure stays. It never throws and never blocks for long.
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

/// A transport whose ranks have memory in common, so that they need no messages for some collectives. Whether it takes one follows from
/// the envelope alone, and so is the same on all ranks. One at a time.
template <class T>
concept GroupTransport = Transport<T> && requires(T& transport, const T& observed, GroupRequest& request) {
  { observed.takes(request.envelope) } -> std::same_as<bool>;
  transport.post(request);
};

/// What both ranks say when their calls differ.
inline Failure mismatch(const Envelope& one, int rank_of_one, const Envelope& other, int rank_of_other) {
  const bool collective = one.tag == Envelope::collective;
  const auto number = [collective](const Envelope& call) {
    return collective ? text(" (call ", call.sequence, " of its group)") : std::string{};
  };
  return {Failure::Kind::mismatch, rank_of_one,
          text("ranks of one group have made different calls: ", describe(one), " on rank ", rank_of_one, number(one), ", ",
               describe(other), " on rank ", rank_of_other, number(other),
               "; every rank must make the same calls in the same order, with the same sizes, types and roots")};
}

}  // namespace pdp::comm
