#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/comm/backend/free_list.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/call.hpp>
#include <pdp/comm/message/call_group.hpp>
#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/probe_log.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// A transport and the calls of all groups that share it, of one rank. Whoever waits for one call moves all of them, so that ranks may wait
/// for the calls of different groups in different orders. Calls of one group run one after another, messages between two ranks at once.
template <Transport T>
class CallQueue {
 public:
  using Group = CallGroup<T>;

  CallQueue(T transport, Duration deadline) : transport_{std::move(transport)}, deadline_{deadline}, probes_{transport_.size()} {}

  [[nodiscard]] T& transport() { return transport_; }
  [[nodiscard]] Duration deadline() const { return deadline_; }
  void deadline(Duration duration) { deadline_ = duration; }

  void attach(Group& group) {
    group.queue = this;
    groups_.push_back(&group);
  }
  void detach(Group& group) {
    std::erase(groups_, &group);
    retired_[next_retired_++ % retired_.size()] = group.channel;
  }

  /// A call to be filled in and given to start(). It has been a collective before, if anything, so that it has the memory of one.
  Call& fresh() { return fresh(collectives_); }
  /// The same for start_message().
  Call& fresh_message() { return fresh(messages_); }

  void start(Group& group, Call& call) {
    call.envelope.channel = group.channel;
    call.envelope.sequence = ++group.calls;
    call.envelope.earlier = group.made;
    group.made = digest(call.envelope);
    call.next = nullptr;
    call.begin();
    (group.first == nullptr ? group.first : group.last->next) = &call;
    group.last = &call;
    if (group.first == &call) run(group);
  }

  void start_message(Group& group, Call& call) {
    call.envelope.channel = group.channel;
    call.begin();
    call.advance(transport_, group.ranks);
  }

  /// Moves what can be moved without waiting.
  void progress() {
    while (step().moved) {
    }
  }

  /// Whether finish() would come back at once, with an error perhaps.
  bool done(Group& group, Call& call) {
    if (call.done() || transport_.failure() != nullptr) return true;
    try {
      step();
      return complete(group, call);
    } catch (const CommunicationError&) {
      return true;
    }
  }

  /// Waits until the call is complete, and takes it back. Throws what went wrong, which ends the world.
  void finish(Group& group, Call& call) {
    try {
      await(group, call);
    } catch (...) {
      abandon(group, call);
      throw;
    }
    recycle(call);
  }

  /// Ends the world for every rank.
  void fail(Failure failure) { transport_.fail(std::move(failure)); }

  /// Takes a call back whose owner does not wait for it. What it borrowed must not be touched after, so unless it is complete the world
  /// must end.
  void abandon(Group& group, Call& call) noexcept {
    if (transport_.failure() == nullptr && !complete(group, call))
      transport_.fail(
          {Failure::Kind::lost, transport_.rank(),
           text("rank ", transport_.rank(), " gave up ", describe(call.envelope), " while it was in flight; its own error says why")});
    if (transport_.failure() != nullptr) {
      for (Group* other : groups_) other->first = other->last = nullptr;
    }
    recycle(call);
  }

 private:
  Call& fresh(FreeList<Call>& calls) {
    if (const Failure* failure = transport_.failure()) failure->raise();
    return calls.take();
  }

  void await(Group& group, Call& call) {
    TimePoint until = TimePoint::max();  // the clock is not read before something is waited for
    bool still = false;                  // no call has advanced since the last look
    while (true) {
      const Look look = step();
      if (complete(group, call)) return;
      still = still && !look.advanced;
      if (look.moved) continue;
      const TimePoint now = Clock::now();
      if (until == TimePoint::max()) until = later(now, deadline_);
      if (now >= until) transport_.fail(timeout_of(group, call));
      if constexpr (CarriesProbes<T>) {
        if (!std::exchange(still, true)) probes_.begin(now);
        find_deadlock(holding_up(group, call), now);
        transport_.wait(std::min(until, probes_.next()));
      } else {
        transport_.wait(until);
      }
    }
  }

  /// Whether the call is complete; a message is moved on here, a collective by run().
  bool complete(Group& group, Call& call) {
    if (call.envelope.tag != Envelope::collective) call.advance(transport_, group.ranks);
    return call.done();
  }

  /// The result of one look at everything.
  struct Look {
    bool moved;     // something has moved, or a new message was asked for; if not, it is safe to sleep
    bool advanced;  // a collective waits for other things than before; a probe that arrives moves, but advances nothing
  };
  Look step() {
    const bool moved = transport_.progress();
    bool advanced = false;
    for (Group* group : groups_) advanced |= run(*group);
    return {moved || advanced, advanced};
  }

  bool run(Group& group) {
    bool moved = false;
    while (group.first != nullptr) {
      Call& call = *group.first;
      const std::size_t bytes = call.schedule.scratch() * call.element;
      if (group.scratch.size() < bytes) group.scratch.resize(bytes);
      call.buffers.scratch = group.scratch.data();
      moved |= call.advance(transport_, group.ranks);
      if (!call.done()) break;
      group.first = call.next;
    }
    return moved;
  }

  /// Finds out whether this rank, which waits for `call`, does so in a circle of ranks that wait for each other. Ends the world then.
  void find_deadlock(const Call& call, TimePoint now) requires CarriesProbes<T> {
    while (const auto received = transport_.take_probe()) answer(*received, call);
    if (const auto attempt = probes_.due(now)) ask({.initiator = transport_.rank(), .attempt = *attempt}, call);
  }
  void ask(Probe probe, const Call& waiting) requires CarriesProbes<T> {
    waiting.each_awaited([&](Probe::Kind kind, const Envelope& envelope, int peer, const SendRequest* send) {
      if (peer == transport_.rank()) return;
      probe.kind = kind;
      probe.call = envelope;
      transport_.send_probe(probe, peer, send);
    });
  }
  /// A probe has arrived at this rank, which waits for `call`.
  void answer(const ReceivedProbe& received, const Call& call) requires CarriesProbes<T> {
    Probe probe = received.probe;
    const int rank = transport_.rank(), size = transport_.size();
    const Call* const waiting = what_holds_up(probe, call);
    if (waiting == nullptr || probe.initiator < 0 || probe.initiator >= size) return;
    if (probe.initiator == rank && !probes_.is_valid(probe)) return;
    if (probe.initiator == rank && waiting == &call) {
      // The calls of some neighbours in the circle differ; one of these reports it, and shows both.
      const bool same = probe.call.tag == Envelope::collective && probe.call.channel == call.envelope.channel &&
                        probe.call.sequence == call.envelope.sequence;
      if (const auto failure = same ? std::nullopt : describe_deadlock(received, call)) transport_.fail(*failure);
    } else if (probes_.passes(probe, waiting)) {
      if (probe.initiator != rank) ++probe.ranks;
      ask(probe, *waiting);
    }
  }
  /// The call for which this rank must wait before it does what a probe asks for; null if it will do that by itself, or has done it.
  const Call* what_holds_up(const Probe& probe, const Call& call) const {
    if (probe.call.tag != Envelope::collective) return &call;  // messages begin when they are called
    const auto found = std::ranges::find(groups_, probe.call.channel, &Group::channel);
    if (found == groups_.end()) return std::ranges::find(retired_, probe.call.channel) == retired_.end() ? &call : nullptr;
    const Group& group = **found;
    if (group.calls < probe.call.sequence) return &call;
    const bool complete = group.first == nullptr || group.first->envelope.sequence > probe.call.sequence;
    const bool met = !complete && group.first->envelope.sequence == probe.call.sequence && probe.kind == Probe::Kind::meeting;
    return complete || met ? nullptr : group.first;
  }
  static std::optional<Failure> describe_deadlock(const ReceivedProbe& back, const Call& call) {
    std::optional<Failure> failure;
    bool of_sender = false;
    call.each_awaited([&](Probe::Kind kind, const Envelope& envelope, int peer, const SendRequest*) {
      if (failure && (of_sender || peer != back.from)) return;
      of_sender = peer == back.from;
      failure = deadlock(back, kind, envelope, peer);
    });
    return failure;
  }

  void recycle(Call& call) { (call.envelope.tag == Envelope::collective ? collectives_ : messages_).give_back(call); }

  /// Returns the call that must end or advance next before `call` can end: the collective of its group that runs, or the message itself.
  static const Call& holding_up(const Group& group, const Call& call) {
    return call.envelope.tag == Envelope::collective ? *group.first : call;
  }

  Failure timeout_of(const Group& group, const Call& call) const {
    const double seconds = std::chrono::duration<double>(deadline_).count();
    return {Failure::Kind::timeout, transport_.rank(),
            text("rank ", transport_.rank(), " waited ", std::lround(seconds * 1000), " ms for ", describe(call.envelope),
                 " and heard nothing from rank ", holding_up(group, call).waiting_for(),
                 "; either that rank makes another call or none, or it needs a longer deadline (PDP_DEADLINE=SECONDS)")};
  }

  T transport_;
  Duration deadline_;
  std::vector<Group*> groups_;
  std::array<std::uint64_t, 16> retired_{};  // channels of the last groups that have ended
  std::size_t next_retired_ = 0;
  ProbeLog probes_;
  FreeList<Call> collectives_, messages_;
};

}  // namespace pdp::comm
