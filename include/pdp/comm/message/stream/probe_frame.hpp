#pragma once

#include <optional>
#include <vector>

#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/stream/frame.hpp>

namespace pdp::comm::stream {

/// Returns a probe as a frame without a payload. The frame's envelope is `probe.call`. The other members of the probe are stored in fields
/// that are otherwise unused in such a frame.
inline Frame frame_of(const Probe& probe) {
  Frame frame{.kind = Frame::Kind::probe, .envelope = probe.call};
  frame.envelope.bytes = probe.received;
  frame.envelope.earlier = probe.attempt;
  frame.envelope.reserved = static_cast<std::uint8_t>(probe.kind);
  frame.reserved = std::uint64_t{static_cast<std::uint32_t>(probe.initiator)} << 32 | probe.ranks;
  return frame;
}

/// Returns the probe in a frame, or nothing if the frame holds none.
inline std::optional<Probe> probe_of(const Frame& frame) {
  if (frame.length > 0 || frame.envelope.reserved > static_cast<std::uint8_t>(Probe::Kind::meeting)) return std::nullopt;
  Probe probe{.kind = static_cast<Probe::Kind>(frame.envelope.reserved),
              .initiator = static_cast<std::int32_t>(frame.reserved >> 32),
              .attempt = frame.envelope.earlier,
              .ranks = static_cast<std::uint32_t>(frame.reserved),
              .call = frame.envelope,
              .received = frame.envelope.bytes};
  probe.call.bytes = 0;
  probe.call.earlier = 0;
  probe.call.reserved = 0;
  return probe;
}

/// Adds a probe to a list, in place of those from earlier attempts of its initiator. A rank that is late must not collect all attempts of
/// the ranks that wait for it.
inline void keep_newest(std::vector<Probe>& probes, const Probe& probe) {
  std::erase_if(probes, [&](const Probe& old) { return old.initiator == probe.initiator && old.attempt < probe.attempt; });
  probes.push_back(probe);
}

}  // namespace pdp::comm::stream
