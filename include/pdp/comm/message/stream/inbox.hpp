#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/message/stream/frame.hpp>
#include <pdp/comm/message/stream/probe_frame.hpp>
#include <pdp/comm/message/stream/queue.hpp>
#include <pdp/comm/message/stream/stray.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::stream {

/// The receiving half of a connection. It splits the stream into messages and delivers each to its receive, or keeps it until there is one.
class Inbox {
 public:
  Inbox(int rank, int peer) : rank_{rank}, peer_{peer} { probes_.reserve(probes_at_first); }

  /// Returns whether a message is expected, so that a read is worth its system call.
  [[nodiscard]] bool expects() const { return posted_.front() != nullptr || receive_ != nullptr; }
  /// Returns whether the stream has ended after the peer's goodbye.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Returns whether the peer has said goodbye. The stream may still be open.
  [[nodiscard]] bool said_bye() const { return said_bye_; }
  /// Returns the failure found on this connection, if any.
  [[nodiscard]] std::optional<Failure>& fault() { return fault_; }
  /// Returns the envelope of the first posted receive, or null.
  [[nodiscard]] const Envelope* expected() const { return posted_.front() != nullptr ? &posted_.front()->envelope : nullptr; }
  /// Returns the envelope of the first posted receive of a collective, or null.
  [[nodiscard]] const Envelope* awaited() const {
    for (const ReceiveRequest* each = posted_.front(); each != nullptr; each = each->next)
      if (each->envelope.tag == Envelope::collective) return &each->envelope;
    return nullptr;
  }
  /// Compares the expected collectives with what is known of another rank: the collective in which it reports a long wait, and its
  /// unexpected messages. If `other` is this inbox and its peer waits in a later collective, the calls differ, because the peer sends no
  /// more messages of earlier collectives.
  void compare(const Inbox& other);
  /// Compares `mine`, a call that uses shared memory and no messages, with the peer's unexpected messages, and with the collective in which
  /// the peer reports a long wait.
  void compare(const Envelope& mine);
  /// Finds unexpected messages of collectives before `mine`, a collective of this rank and the peer. Such messages should have been
  /// received before `mine` began.
  void compare_earlier(const Envelope& mine);
  /// Returns the number of messages that have arrived completely.
  [[nodiscard]] std::uint64_t received() const { return received_; }
  /// Returns the peer's probes, in the order of arrival.
  [[nodiscard]] std::vector<Probe>& probes() { return probes_; }
  /// Returns whether fault() is a failure of the world that the peer has reported.
  [[nodiscard]] bool told() const { return was_told_; }

  /// Delivers an unexpected message to the receive if one matches. Otherwise the receive waits for its message.
  void post(ReceiveRequest& receive, Strays& pool) {
    Stray* const stray = strays_.take_matching(receive.envelope);
    if (stray != nullptr)
      hand_over(*stray, receive, pool);
    else if (said_bye_)
      lost_after_bye(receive.envelope);
    else
      posted_.push_back(receive);
  }

  /// Returns the destination of the rest of a frame, if its bytes can be read there without processing. Returns an empty span if there is
  /// none, or if reading directly does not pay.
  std::span<std::byte> straight() {
    if (frame_left_ < least_straight || held_ > 0 || told_) return {};
    if (stray_ != nullptr) return {stray_->room(frame_left_), frame_left_};
    if (receive_ != nullptr && receive_->consume == nullptr) return {receive_->data + offset_, frame_left_};
    return {};
  }
  /// Records bytes that the stream has written to the destination that straight() returned.
  void placed(std::size_t bytes) {
    if (stray_ != nullptr) stray_->filled += bytes;
    took(bytes);
  }
  /// Returns the bytes left in the current frame. more_follows() returns whether its message continues in another frame.
  [[nodiscard]] std::size_t frame_left() const { return frame_left_; }
  [[nodiscard]] bool more_follows() const { return message_left_ > frame_left_; }

  /// Processes the next bytes of the stream and returns their number. It may move them to lower addresses, by less than a frame header. The
  /// remaining bytes, a part of a header or of an element, must be passed again in front of the bytes that follow.
  std::size_t take(std::byte* from, std::size_t size, Strays& pool) {
    std::size_t taken = 0;
    while (taken < size && !fault_) {
      std::size_t used = 0;
      if (frame_left_ == 0) {
        if (size - taken < sizeof(Frame)) break;
        Frame frame;
        std::memcpy(&frame, from + taken, used = sizeof(Frame));
        open(frame, pool);
      } else {
        const std::size_t there = std::min(size - taken, frame_left_);
        used = deliver(from + taken, there);
        took(used);
        if (used == 0) break;
      }
      taken += used;
    }
    return taken;
  }

  /// Handles the end of the stream, once everything before it has been read. The peer is lost unless it has said goodbye.
  void closed() {
    if (said_bye_)
      ended_ = true;
    else
      lost(text("rank ", peer_, " is gone: its connection to rank ", rank_,
                " closed unexpectedly, so its process has probably ended; its own output says why"));
  }
  /// Records that the peer ended its part before a stream to it was requested.
  void left() { said_bye_ = ended_ = true; }
  /// Records that the stream contains data that no rank of pdp writes.
  void garbled() {
    lost(text("rank ", rank_, " received malformed data from rank ", peer_, "; the connection or that rank's memory is damaged"));
  }
  /// Records that the peer has said goodbye although this rank still has a call with it.
  void lost_after_bye(const Envelope& call) {
    lost(text("rank ", peer_, " has finished while rank ", rank_, " still has a call with it (", describe(call),
              "); all ranks must make the same calls"));
  }

 private:
  static constexpr std::size_t probes_at_first = 8;        // reserved, so that a step that has to wait does not allocate
  static constexpr std::size_t largest_element = 8;        // bytes, of any DType
  static constexpr std::size_t least_straight = 4 * 1024;  // bytes; for fewer, a copy costs less than another read

  void lost(std::string why) { fault_ = Failure{Failure::Kind::lost, peer_, std::move(why)}; }

  void open(const Frame& frame, Strays& pool) {
    switch (frame.kind) {
      case Frame::Kind::message: {
        const Envelope& message = frame.envelope;
        if (message_left_ > 0 || message.bytes > longest_message || frame.length != std::min<std::uint64_t>(message.bytes, Frame::capacity))
          return garbled();
        frame_left_ = frame.length;
        message_left_ = message.bytes;
        return begin(message, pool);
      }
      case Frame::Kind::more:
        if (message_left_ == 0 || frame.length != std::min<std::uint64_t>(message_left_, Frame::capacity)) return garbled();
        frame_left_ = frame.length;
        return;
      case Frame::Kind::bye:
        if (message_left_ > 0 || frame.length > 0) return garbled();
        said_bye_ = true;
        if (posted_.front() != nullptr) lost_after_bye(posted_.front()->envelope);
        return;
      case Frame::Kind::failure:
        if (frame.length > Frame::longest_text || frame.envelope.tag < 0 || frame.envelope.tag > as_int(Failure::Kind::timeout))
          return garbled();
        told_ = Failure{static_cast<Failure::Kind>(frame.envelope.tag), frame.envelope.root, {}};
        frame_left_ = frame.length;
        if (frame.length == 0) adopt_told();
        return;
      case Frame::Kind::waiting:
        if (frame.length > 0) return garbled();
        waits_in_ = frame.envelope;
        return;
      case Frame::Kind::probe:
        if (const std::optional<Probe> probe = probe_of(frame))
          keep_newest(probes_, *probe);
        else
          garbled();
        return;
      case Frame::Kind::beat:  // on pulses only
        break;
    }
    garbled();
  }

  static bool is_same_call(Envelope one, const Envelope& other);
  /// Records the mismatch of two calls as the fault, or an earlier mismatch with the peer if one is known.
  void refuse(const Envelope& mine, const Envelope& theirs) {
    compare_earlier(mine);
    if (!fault_) fault_ = mismatch(mine, rank_, theirs, peer_);
  }

  void begin(const Envelope& message, Strays& pool) {
    offset_ = 0;
    receive_ = posted_.take_matching(message);
    if (receive_ == nullptr) {
      stray_ = &pool.take();
      stray_->envelope = message;
      strays_.push_back(*stray_);
    } else if (receive_->envelope != message) {
      refuse(receive_->envelope, message);
    }
    if (message_left_ == 0) complete();
  }

  /// Delivers bytes of a frame to their destination. Returns the number of bytes delivered: all except a part of an element at the end.
  std::size_t deliver(std::byte* from, std::size_t size) {
    if (told_) {
      told_->message.append(reinterpret_cast<const char*>(from), size);
    } else if (stray_ != nullptr) {
      std::memcpy(stray_->room(size), from, size);
      stray_->filled += size;
    } else if (receive_->consume == nullptr) {
      std::memcpy(receive_->data + offset_, from, size);
    } else if (held_ > 0) {
      size = std::min(size, receive_->element - held_);
      std::memcpy(element_.data() + held_, from, size);
      held_ += size;
      if (held_ == receive_->element) {
        receive_->consume(receive_->data + (offset_ + size - held_), element_.data(), held_);
        held_ = 0;
      }
    } else {
      size -= size % receive_->element;
      // Misaligned values are moved to a lower, aligned address. There is space for that, because a header precedes them.
      std::byte* const aligned = from - reinterpret_cast<std::uintptr_t>(from) % std::bit_ceil(receive_->element);
      if (aligned != from) std::memmove(aligned, from, size);
      if (size > 0) receive_->consume(receive_->data + offset_, aligned, size);
    }
    return size;
  }

  void took(std::size_t bytes) {
    frame_left_ -= bytes;
    if (told_) {
      if (frame_left_ == 0) adopt_told();
      return;
    }
    offset_ += bytes;
    message_left_ -= bytes;
    if (message_left_ == 0) complete();
  }
  void adopt_told() {
    fault_ = std::exchange(told_, std::nullopt);
    was_told_ = true;
  }
  void complete() {
    ++received_;
    if (receive_ != nullptr) receive_->done = true;
    receive_ = nullptr;
    stray_ = nullptr;
  }

  /// Delivers the stored bytes of a message to its receive. Bytes that arrive later go to the receive directly.
  void hand_over(Stray& stray, ReceiveRequest& receive, Strays& pool) {
    if (receive.envelope != stray.envelope) return refuse(receive.envelope, stray.envelope);
    const std::size_t whole = receive.consume != nullptr ? stray.filled - stray.filled % receive.element : stray.filled;
    if (receive.consume != nullptr && whole > 0)
      receive.consume(receive.data, stray.bytes.get(), whole);
    else if (whole > 0)
      std::memcpy(receive.data, stray.bytes.get(), whole);
    if (&stray == stray_) {
      held_ = stray.filled - whole;  // bytes of an element that has not arrived completely
      if (held_ > 0) std::memcpy(element_.data(), stray.bytes.get() + whole, held_);
      offset_ = stray.filled;
      receive_ = &receive;
      stray_ = nullptr;
    } else {
      receive.done = true;
    }
    pool.give_back(stray);
  }

  int rank_;
  int peer_;
  Queue<ReceiveRequest> posted_;
  Queue<Stray> strays_;  // in the order of arrival; the last one may still be arriving

  // The message that is arriving: for receive_, for stray_, or a failure that the peer reports (told_).
  ReceiveRequest* receive_ = nullptr;
  Stray* stray_ = nullptr;
  std::optional<Failure> told_;
  std::optional<Envelope> waits_in_;  // the collective in which the peer last reported a long wait
  std::size_t offset_ = 0;            // bytes of the message that have been delivered
  std::size_t frame_left_ = 0;        // bytes of its frame that have not been delivered
  std::uint64_t message_left_ = 0;

  alignas(std::max_align_t) std::array<std::byte, largest_element> element_{};  // the first bytes of an incomplete element
  std::size_t held_ = 0;                                                        // number of these bytes
  std::uint64_t received_ = 0;
  std::vector<Probe> probes_;
  bool said_bye_ = false;
  bool ended_ = false;
  bool was_told_ = false;
  std::optional<Failure> fault_;
};

}  // namespace pdp::comm::stream

#include <pdp/comm/message/stream/inbox_compare.hpp>
#include <pdp/core/error.hpp>
