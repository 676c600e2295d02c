#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// A question that travels along ranks that wait for each other, to find out whether they do so in a circle: the algorithm of Chandy, Misra
/// and Haas (Distributed Deadlock Detection, 1983) for processes that wait for all of several things.
///
/// A rank that has waited for some time asks each rank that it waits for. A rank that waits itself, and has not yet done what is asked for,
/// asks on in its place. A probe that comes back to its initiator has gone through a circle, in which no rank can go on.
struct Probe {
  /// What the asking rank waits for: a message from the asked one, its receive of a message, or its part in a meeting.
  enum class Kind : std::uint8_t { receive, send, meeting };

  Kind kind = Kind::receive;
  int initiator = -1;          // rank of the world
  std::uint32_t attempt = 0;   // of the initiator, from 1
  std::uint32_t ranks = 1;     // that the probe has gone through, the initiator included
  Envelope call{};             // in which the asking rank waits
  std::uint64_t received = 0;  // messages between the two that had been received; for the transport
};

/// A probe, and the rank that asks.
struct ReceivedProbe {
  Probe probe;
  int from = -1;
};

/// A transport that carries probes between ranks that wait.
///
/// - send_probe(probe, peer, send): sends it, unless the peer can let this rank go on without a call of its own. `send`: what a probe of
///   Kind::send is about; null otherwise.
/// - take_probe(): the next probe that has arrived, if what it asks for has not been sent or received meanwhile.
template <class T>
concept CarriesProbes = Transport<T> && requires(T& transport, const Probe& probe, int peer, const SendRequest* send) {
  transport.send_probe(probe, peer, send);
  { transport.take_probe() } -> std::same_as<std::optional<ReceivedProbe>>;
};

/// "receive of 8 float32 with tag 7", "send of 8 float32 with tag 7", "all_reduce of 3 float32".
std::string describe(Probe::Kind kind, const Envelope& call);

/// The failure of a world in which a probe has come back. `mine`: how its initiator waits for `next`, the first rank on the probe's way.
Failure deadlock(const ReceivedProbe& back, Probe::Kind kind, const Envelope& mine, int next);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/message/source/probe.hpp>
#endif
