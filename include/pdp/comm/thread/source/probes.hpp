#pragma once

/// Definitions of the probe functions of pdp/comm/thread/transport.hpp, which includes this file.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/thread/transport.hpp>
#include <pdp/comm/thread/world.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE void ThreadTransport::send_probe(Probe probe, int peer, const SendRequest* send) {
  {
    Mailbox& taker = mailbox(send != nullptr ? peer : rank_);
    const int sender = send != nullptr ? rank_ : peer;
    const std::lock_guard lock{taker.mutex};
    probe.received = taker.taken[as_size(sender)];
    bool found = false;
    for (const auto& [from, sent] : taker.sends) {
      if (from != sender) continue;
      const bool expected = sent->envelope.channel == probe.call.channel && sent->envelope.tag == probe.call.tag;
      found = found || (send != nullptr ? sent == send : expected);
      if (send == nullptr) ++probe.received;  // this message has arrived, so this rank does not wait for it
    }
    if (probe.kind != Probe::Kind::meeting && found != (send != nullptr)) return;  // the awaited event has just happened
  }
  Mailbox& to = mailbox(peer);
  {
    const std::lock_guard lock{to.mutex};
    to.probes.push_back({probe, rank_});
    to.probed.store(true, std::memory_order_relaxed);
  }
  to.bell.ring();
}

PDP_INLINE std::optional<ReceivedProbe> ThreadTransport::take_probe() {
  Mailbox& own = mailbox(rank_);
  if (!own.probed.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock{own.mutex};
  // A message that arrived after the last poll may let this rank go on. So probes wait until it has been taken.
  for (const ReceiveRequest* receive : receives_)
    if (thread::find_message(own, *receive) != own.sends.end()) return std::nullopt;
  while (!own.probes.empty()) {
    const ReceivedProbe next = own.probes.front();
    own.probes.erase(own.probes.begin());
    const auto from = as_size(next.from);
    const std::uint64_t now = next.probe.kind == Probe::Kind::send ? own.taken[from] : sent_[from];
    if (next.probe.kind == Probe::Kind::meeting || next.probe.received == now) return next;
  }
  own.probed.store(false, std::memory_order_relaxed);
  return std::nullopt;
}

}  // namespace pdp::comm
