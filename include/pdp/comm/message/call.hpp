#pragma once

#include <cstring>
#include <deque>

#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/schedule.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// The memory that a call works on. Input and output may be the same.
struct Buffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
};

/// One call in flight. It carries out a schedule over a transport, round by round, each time advance() is called. Calls are reused and keep
/// their memory, so a call like an earlier one allocates nothing.
class Call {
 public:
  Schedule schedule;               // to be written before begin()
  Envelope envelope;               // of every message of the call, except for `bytes`
  std::uint64_t meeting = 0;       // channel of the ranks that share memory, for a rendezvous
  Buffers buffers;                 // input and output belong to the caller, scratch memory to the group
  Combine combine = nullptr;       // for a call that reduces
  std::size_t element = 1;         // bytes of an element
  std::byte* divisible = nullptr;  // values to divide by the size of the group in the end, for an average
  std::size_t divisible_bytes = 0;
  void (*divide)(std::byte*, std::size_t, int) = nullptr;
  Call* next = nullptr;  // in the queue of its group

  void begin() {
    at_ = 0;
    sends_used_ = receives_used_ = 0;
    done_ = false;
  }

  [[nodiscard]] bool done() const { return done_; }

  /// Starts every round that can start now and returns whether the call advanced. `ranks`: the world ranks of the group's members.
  template <Transport T>
  bool advance(T& transport, const std::vector<int>& ranks) {
    bool moved = false;
    while (!done_ && round_complete()) {
      moved = true;
      if (at_ == schedule.steps().size()) {
        if (divide != nullptr) divide(divisible, divisible_bytes, as_int(ranks.size()));
        done_ = true;
      } else {
        begin_round(transport, ranks);
      }
    }
    return moved;
  }

  /// Returns the world rank of a peer that this call still waits for, or -1.
  [[nodiscard]] int waiting_for() const {
    if (!together_.done) return together_.missing;
    for (std::size_t i = 0; i < receives_used_; ++i)
      if (!receives_[i].done) return receives_[i].peer;
    for (std::size_t i = 0; i < sends_used_; ++i)
      if (!sends_[i].done.load(std::memory_order_acquire)) return sends_[i].peer;
    return -1;
  }
  /// Calls ask(kind, envelope, peer, send) for everything that this call waits for now. `send` is null except for Kind::send.
  template <class Ask>
  void each_awaited(const Ask& ask) const {
    const SendRequest* const none = nullptr;
    if (!together_.done && together_.missing >= 0) ask(Probe::Kind::meeting, together_.envelope, together_.missing, none);
    for (std::size_t i = 0; i < receives_used_; ++i)
      if (!receives_[i].done) ask(Probe::Kind::receive, receives_[i].envelope, receives_[i].peer, none);
    for (std::size_t i = 0; i < sends_used_; ++i)
      if (!sends_[i].done.load(std::memory_order_acquire)) ask(Probe::Kind::send, sends_[i].envelope, sends_[i].peer, &sends_[i]);
  }

 private:
  [[nodiscard]] bool round_complete() const { return together_.done && waiting_for() < 0; }

  template <Transport T>
  void begin_round(T& transport, const std::vector<int>& ranks) {
    const auto& steps = schedule.steps();
    const int round = steps[at_].round;
    sends_used_ = receives_used_ = 0;
    for (; at_ < steps.size() && steps[at_].round == round; ++at_) {
      const Step& step = steps[at_];
      const std::size_t bytes = step.count * element;
      if (step.action == Step::Action::copy || step.action == Step::Action::add) {
        std::byte* to = writable(step.buffer) + step.offset * element;
        const std::byte* from = readable(step.source) + step.source_offset * element;
        if (step.action == Step::Action::add)
          combine(to, from, bytes);
        else if (to != from && bytes > 0)
          std::memmove(to, from, bytes);
        continue;
      }
      if (step.action == Step::Action::together) {
        if constexpr (GroupTransport<T>) {
          together_.envelope = envelope;
          together_.envelope.bytes = bytes;
          together_.meeting = meeting;
          together_.values = writable(step.buffer) + step.offset * element;
          together_.combine = combine;
          together_.element = element;
          transport.post(together_);
        }
        continue;
      }
      const int peer = ranks[as_size(step.peer)];
      Envelope message = envelope;
      message.bytes = bytes;
      if (message.verb == Verb::send) message.count = step.count;
      if (step.action == Step::Action::send) {
        SendRequest& send = slot(sends_, sends_used_);
        send.envelope = message;
        send.data = readable(step.buffer) + step.offset * element;
        send.peer = peer;
        transport.post(send);
      } else {
        ReceiveRequest& receive = slot(receives_, receives_used_);
        receive.envelope = message;
        receive.data = writable(step.buffer) + step.offset * element;
        receive.consume = step.action == Step::Action::combine ? combine : nullptr;
        receive.element = element;
        receive.peer = peer;
        transport.post(receive);
      }
    }
  }

  template <class Request>
  static Request& slot(std::deque<Request>& requests, std::size_t& used) {
    if (used == requests.size()) requests.emplace_back();
    return requests[used++];
  }

  [[nodiscard]] const std::byte* readable(Step::Buffer buffer) const {
    return buffer == Step::Buffer::input ? buffers.input : writable(buffer);
  }
  [[nodiscard]] std::byte* writable(Step::Buffer buffer) const {
    return buffer == Step::Buffer::scratch ? buffers.scratch : buffers.output;
  }

  std::deque<SendRequest> sends_;  // a deque, because requests must not move
  std::deque<ReceiveRequest> receives_;
  GroupRequest together_;
  std::size_t sends_used_ = 0, receives_used_ = 0;
  std::size_t at_ = 0;
  bool done_ = true;
};

}  // namespace pdp::comm
