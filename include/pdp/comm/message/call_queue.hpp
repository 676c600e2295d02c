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

/// The transport of one rank and the calls of all groups that share it.
///
/// Waiting for one call makes progress on all calls, so ranks can wait for calls of different groups in different orders. Collectives of
/// one group run one after another. Messages between two ranks start at once.
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

  /// Returns a call to fill in and pass to start(). A reused call was a collective before, so it already has the memory that a collective
  /// needs. Throws if the world has failed.
  Call& fresh() { return fresh(collectives_); }
  /// Returns a call to fill in and pass to start_message(). Throws if the world has failed.
  Call& fresh_message() { return fresh(messages_); }

  /// Starts a collective, or queues it if earlier collectives of its group are in flight.
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

  /// Starts a message at once.
  void start_message(Group& group, Call& call) {
    call.envelope.channel = group.channel;
    call.begin();
    call.advance(transport_, group.ranks);
  }

  /// Moves everything that can move without waiting.
  void progress() {
    while (step().moved) unseen_ = true;
  }

  /// Sleeps until there may be something to advance, at the latest until the given time. Throws if the world has failed.
  void wait_for_progress(TimePoint until) {
    const bool moved = step().moved;
    if (std::exchange(unseen_, false) || moved) return;
    if constexpr (CarriesProbes<T>) {
      while (transport_.take_probe()) {  // this rank waits for no particular rank, so it is in no cycle of waiting ranks
      }
    }
    transport_.wait(until);
  }

  /// Returns whether finish() would return or throw without waiting.
  bool done(Group& group, Call& call) {
    if (call.done() || transport_.failure() != nullptr) return true;
    try {
      unseen_ |= step().moved;
      return complete(group, call);
    } catch (const CommunicationError&) {
      return true;
    }
  }

  /// Waits until the call is complete and recycles it. Throws if anything goes wrong, which ends the world.
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

  /// Recycles a call that its owner does not wait for. Ends the world unless the call is complete, because the memory that it borrowed must
  /// not be accessed afterwards.
  void abandon(Group& group, Call& call) noexcept {
    if (transport_.failure() == nullptr && !complete(group, call))
      transport_.fail({Failure::Kind::lost, transport_.rank(),
                       text("rank ", transport_.rank(), " abandoned ", describe(call.envelope),
                            " before it was complete; the error of rank ", transport_.rank(), " says why")});
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
    TimePoint until = TimePoint::max();  // the clock is not read before a wait is necessary
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

  /// Returns whether the call is complete. Advances a message; run() advances collectives.
  bool complete(Group& group, Call& call) {
    if (call.envelope.tag != Envelope::collective) call.advance(transport_, group.ranks);
    return call.done();
  }

  /// The result of one look at the transport and all groups.
  struct Look {
    bool moved;     // something moved or a new message was posted; if not, it is safe to sleep
    bool advanced;  // a collective waits for something new; an arriving probe sets only `moved`
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

  /// Checks whether this rank, which waits for `call`, is part of a cycle of waiting ranks. If so, ends the world.
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
  /// Handles a probe that has arrived at this rank, which waits for `call`.
  void answer(const ReceivedProbe& received, const Call& call) requires CarriesProbes<T> {
    Probe probe = received.probe;
    const int rank = transport_.rank(), size = transport_.size();
    const Call* const waiting = what_holds_up(probe, call);
    if (waiting == nullptr || probe.initiator < 0 || probe.initiator >= size) return;
    if (probe.initiator == rank && !probes_.is_valid(probe)) return;
    if (probe.initiator == rank && waiting == &call) {
      // If this rank and the sender of the probe wait in the same collective, the calls of two other neighbours in the cycle differ. One of
      // those neighbours reports both calls.
      const bool same = probe.call.tag == Envelope::collective && probe.call.channel == call.envelope.channel &&
                        probe.call.sequence == call.envelope.sequence;
      if (const auto failure = same ? std::nullopt : describe_deadlock(received, call)) transport_.fail(*failure);
    } else if (probes_.passes(probe, waiting)) {
      if (probe.initiator != rank) ++probe.ranks;
      ask(probe, *waiting);
    }
  }
  /// Returns the call that this rank must complete before it does what the probe asks for. Returns null if this rank has done that already,
  /// or will do it without completing another call.
  const Call* what_holds_up(const Probe& probe, const Call& call) const {
    if (probe.call.tag != Envelope::collective) return &call;  // messages start as soon as they are called
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

  /// Returns the call that must end or advance next before `call` can end: the running collective of its group, or the message itself.
  static const Call& holding_up(const Group& group, const Call& call) {
    return call.envelope.tag == Envelope::collective ? *group.first : call;
  }

  Failure timeout_of(const Group& group, const Call& call) const {
    const double seconds = std::chrono::duration<double>(deadline_).count();
    return {Failure::Kind::timeout, transport_.rank(),
            text("rank ", transport_.rank(), " waited ", std::lround(seconds * 1000), " ms for ", describe(call.envelope),
                 " and heard nothing from rank ", holding_up(group, call).waiting_for(),
                 "; either that rank makes other calls or none, or the call needs a longer deadline (PDP_DEADLINE=SECONDS)")};
  }

  T transport_;
  Duration deadline_;
  bool unseen_ = false;  // something has moved since wait_for_progress() returned, perhaps a call that its owner has already looked at
  std::vector<Group*> groups_;
  std::array<std::uint64_t, 16> retired_{};  // channels of the groups that ended last
  std::size_t next_retired_ = 0;
  ProbeLog probes_;
  FreeList<Call> collectives_, messages_;
};

}  // namespace pdp::comm
