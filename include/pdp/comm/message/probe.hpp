#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// A probe for deadlock detection. It travels along ranks that wait for each other, to find out whether they form a cycle.
///
/// The algorithm is that of Chandy, Misra and Haas (Distributed Deadlock Detection, 1983), for processes that wait for all of several
/// events. A rank that has waited for some time sends a probe to each rank that it waits for. A rank that receives a probe forwards it in
/// the same way, if this rank itself waits and has not yet done what the probe asks for. A probe that returns to its initiator has gone
/// through a cycle, in which no rank can continue.
struct Probe {
  /// The event that the sender of the probe waits for: a message from the receiver of the probe, the receiver's receive of a message, or
  /// the receiver's part in a shared-memory rendezvous.
  enum class Kind : std::uint8_t { receive, send, meeting };

  Kind kind = Kind::receive;
  int initiator = -1;          // rank in the world
  std::uint32_t attempt = 0;   // number of the initiator's attempt, from 1
  std::uint32_t ranks = 1;     // number of ranks that the probe has gone through, including the initiator
  Envelope call{};             // the call in which the sender of the probe waits
  std::uint64_t received = 0;  // messages received so far in the awaited direction; set and compared by the transport
};

/// A probe and the rank that sent it.
struct ReceivedProbe {
  Probe probe;
  int from = -1;
};

/// A transport that carries probes between waiting ranks.
///
/// - send_probe(probe, peer, send): sends the probe. Sends nothing if this rank can continue without a further call of the peer. `send`:
///   the send that a probe of Kind::send is about; otherwise null.
/// - take_probe(): returns the next probe that has arrived. Drops a probe if the message that it asks for has been sent or received
///   meanwhile.
template <class T>
concept CarriesProbes = Transport<T> && requires(T& transport, const Probe& probe, int peer, const SendRequest* send) {
  transport.send_probe(probe, peer, send);
  { transport.take_probe() } -> std::same_as<std::optional<ReceivedProbe>>;
};

/// Returns a text such as "receive of 8 float32 with tag 7", "send of 8 float32 with tag 7" or "all_reduce of 3 float32".
std::string describe(Probe::Kind kind, const Envelope& call);

/// Returns the failure of a world in which a probe has returned to its initiator. `kind` and `mine`: how, and in which call, the initiator
/// waits for `next`, the first rank on the probe's way.
Failure deadlock(const ReceivedProbe& back, Probe::Kind kind, const Envelope& mine, int next);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/message/source/probe.hpp>
#endif
