#pragma once

/// Definitions for pdp/comm/message/probe.hpp; see pdp/core/separate_compilation.hpp.

#include <string>
#include <string_view>

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE std::string describe(Probe::Kind kind, const Envelope& call) {
  std::string words = describe(call);
  if (kind == Probe::Kind::receive && call.tag != Envelope::collective)
    words.replace(0, std::string_view{name(Verb::send)}.size(), "receive");
  return words;
}

PDP_INLINE Failure deadlock(const ReceivedProbe& back, Probe::Kind kind, const Envelope& mine, int next) {
  const int rank = back.probe.initiator;
  const std::string who = back.probe.ranks == 2 ? std::string{"two ranks wait for each other"}
                                                : text(back.probe.ranks, " ranks wait for each other in a cycle");
  return {Failure::Kind::mismatch, rank,
          text(who, ": rank ", rank, " for rank ", next, " (", describe(kind, mine), "), and rank ", back.from, " for rank ", rank, " (",
               describe(back.probe.kind, back.probe.call),
               "); every rank must make the same calls in the same order, and each message needs its send and its receive")};
}

}  // namespace pdp::comm
