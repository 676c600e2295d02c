#pragma once

/// Definitions for pdp/rpc/call/core.hpp: waiting, the search for calls that wait for each other, and the end of the job. See
/// pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/wire/courier.hpp>
#include <pdp/rpc/wire/head.hpp>
#include <pdp/rpc/wire/slot_id.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

PDP_INLINE void Core::raise_pending() {
  if (pending_) std::exchange(pending_, {})->raise();
}

PDP_INLINE void Core::progress() {
  send_releases();
  courier_.poll();
  for (auto calls = ready_.size(); calls > 0 && run_one(); --calls) {  // those that become ready meanwhile wait for the next time
  }
}

PDP_INLINE void Core::wait(const std::function<bool()>& ready, comm::TimePoint until, const std::function<std::string()>& what,
                           Awaited awaited) {
  using namespace std::chrono_literals;
  const std::size_t frame = frames_.size();  // of the call that waits, if it is one; further calls run above it
  struct Restore {
    Core& core;
    std::size_t frame;
    Frame before;
    ~Restore() {
      if (frame > 0) core.frames_[frame - 1] = std::move(before);
    }
  };
  const Restore restore{*this, frame, frame > 0 ? frames_[frame - 1] : Frame{}};
  const std::uint64_t number = ++waits_;
  if (frame > 0) frames_[frame - 1] = {frames_[frame - 1].call, awaited, number, {}};
  comm::TimePoint active = comm::Clock::now();
  comm::TimePoint probe = awaited.slot && frame > 0 ? active + 100ms : comm::TimePoint::max();
  while (!ready()) {
    const bool moved = courier_.poll();
    if (ready()) break;
    if (frame > 0 && !frames_[frame - 1].cycle.empty()) throw Error{frames_[frame - 1].cycle};
    if (run_one() || moved) {
      if (polling_ > comm::Duration{}) active = comm::Clock::now();
      continue;
    }
    send_releases();
    const comm::TimePoint now = comm::Clock::now();
    if (now >= until)
      throw Timeout{text(who(rank()), " has waited for ", what(), " until its deadline; if it needs more time, set PDP_DEADLINE=SECONDS")};
    if (now >= probe) {
      send_probe(awaited, {rank(), number, 0, text(frames_[frame - 1].call->method->name, " on ", who(rank()), " waits for ", what())});
      probe = now + 1s;
      continue;
    }
    if (polling_ > comm::Duration{} && now - active < polling_) continue;
    if (courier_.has_sent_all(rank())) courier_.sleep(std::min(until, probe));
  }
}

PDP_INLINE void Core::send_probe(const Awaited& awaited, const Probe& probe) {
  constexpr std::uint32_t most_hops = 256;  // a cycle without the initiator would pass its probes on for ever
  if (probe.hops >= most_hops) return;
  Writer writer;
  for (const char letter : std::string_view{probe.path}.substr(0, Writer::largest_copy)) writer.put(letter);
  send(awaited.owner,
       {.kind = Head::Kind::probe, .rank = probe.initiator, .served = probe.hops + 1, .slot = awaited.slot, .wait = probe.wait},
       std::move(writer));
}

PDP_INLINE void Core::chase(SlotId slot, Probe probe) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return;
  if (const auto call = found->second.maker_call.lock()) chase(*call, std::move(probe), 0);  // else the result is complete
}

PDP_INLINE void Core::chase(const Call& call, Probe probe, int depth) {
  constexpr int most = 64;  // calls of this rank that wait for each other's objects
  if (depth == most) return;
  if (call.runs) {
    const auto begin = std::ranges::find(frames_, &call, &Frame::call);
    for (auto frame = begin; frame != frames_.end(); ++frame) {  // a call continues when those above it have ended
      if (probe.initiator == rank() && frame->wait == probe.wait) {
        frame->cycle =
            text("remote calls wait for each other: ", probe.path, "; let one of them return before it has the result of the other");
        return;
      }
      if (!frame->awaited.slot) continue;
      Probe next = probe;
      next.path += text(", which waits for a result of ", who(frame->awaited.owner));
      send_probe(frame->awaited, next);
    }
    return;
  }
  if (call.missing > 0)
    for (const Awaited& need : call.needs) send_probe(need, probe);
  const auto target = slots_.find(call.target);
  if (target == slots_.end()) return;
  const Slot& object = target->second;
  std::shared_ptr<const Call> before = object.running;
  if (!before && !object.calls.empty() && object.calls.front().get() != &call) before = object.calls.front();
  if (!before && object.state == Slot::State::expected) before = object.maker_call.lock();
  if (!before || before.get() == &call) return;
  if (before->method != nullptr) probe.path += text(", which waits for the end of ", before->method->name, " on ", who(rank()));
  chase(*before, std::move(probe), depth + 1);
}

PDP_INLINE void Core::serve() {
  wait([this] { return ended_; }, comm::TimePoint::max(), [] { return std::string{"the end of the job"}; });
  terminate();
}

PDP_INLINE void Core::end() {
  for (int to = 0; to < size(); ++to)
    if (to != rank()) send(to, {.kind = Head::Kind::end});
  terminate();
}

PDP_INLINE bool Core::quiet() const { return calls_ == 0 && ready_.empty() && expected_.empty(); }

/// Ends when no rank has a call and no message is under way: two successive sums over all ranks show the same numbers of sent and of
/// received messages (Mattern 1987).
PDP_INLINE void Core::terminate() {
  const auto what = [] { return std::string{"the end of the calls of all ranks"}; };
  const auto until = [this] { return comm::later(comm::Clock::now(), deadline()); };
  std::array<std::int64_t, 2> before{-1, -1};
  while (true) {
    while (!quiet()) {  // the deadline is for the next message, not for all calls
      const std::int64_t seen = handled_;
      wait([&] { return quiet() || handled_ != seen; }, until(), what);
    }
    send_releases();
    std::array<std::int64_t, 2> sums{sent_, handled_};
    auto summed = collectives_.all_reduce_async(sums, comm::Sum{});
    wait([&] { return summed.done(); }, until(), what);
    summed.wait();
    if (sums[0] == sums[1] && sums == before) break;
    before = sums;
  }
  if (!timeline_file_.empty()) write_timeline();
  courier_.finish(until());
  raise_pending();
}

}  // namespace pdp::rpc
