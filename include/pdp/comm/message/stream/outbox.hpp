#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <pdp/comm/message/stream/frame.hpp>
#include <pdp/comm/message/stream/queue.hpp>
#include <pdp/comm/message/transport.hpp>

namespace pdp::comm::stream {

/// The result of a write to a stream if the peer takes no more data.
inline constexpr std::size_t gone = std::numeric_limits<std::size_t>::max();

/// The sending half of a connection. Messages are sent in the order in which they were posted.
class Outbox {
 public:
  Outbox() { notes_.reserve(notes_at_first); }

  [[nodiscard]] bool empty() const { return sends_.front() == nullptr && !has_note() && last_words_sent_ == last_words_.size(); }

  void post(SendRequest& send) {
    sends_.push_back(send);
    if (sends_.front() == &send) begin();
  }

  /// Queues a note that this rank waits in a collective, to be sent before the next frame of a message. Does nothing if the last note was
  /// for the same collective.
  void note(const Envelope& call) {
    if (noted_ && noted_->channel == call.channel && noted_->sequence == call.sequence) return;
    if (note({.kind = Frame::Kind::waiting, .envelope = call})) noted_ = call;
  }
  /// Queues a frame without a payload, to be sent before the next frame of a message. If many frames are queued already, the peer does not
  /// read: drops the frame and returns false.
  bool note(const Frame& frame) {
    if (notes_.size() == most_notes) return false;
    notes_.push_back(frame);
    return true;
  }

  /// Writes as much as the stream takes at once, up to a few frames, so that a rank that sends continuously still reads. Returns whether
  /// anything moved. `write(parts)`: returns the number of bytes that the stream has taken, or `gone` if it will never take any.
  template <class Write>
  bool flush(const Write& write) {
    bool moved = false;
    for (int frames = 0; frames < frames_at_once && !empty() && !broken_; ++frames) {
      std::array<iovec, 2> parts;
      const bool noting = has_note() && (sends_.front() == nullptr || sent_ == 0);
      const std::size_t asked = noting                      ? next_of_note(parts)
                                : sends_.front() != nullptr ? next_of_message(parts)
                                                            : next_of_last_words(parts);
      const std::size_t sent = write(std::span<iovec, 2>{parts});
      broken_ = sent == gone;
      if (broken_ || sent == 0) break;
      moved = true;
      if (noting)
        advance_note(sent);
      else
        advance(sent);
      if (sent < asked) break;
    }
    return moved;
  }

  /// Returns whether the peer takes no more data. The receiving half finds out why, because the peer's last frames may still be unread.
  [[nodiscard]] bool broken() const { return broken_; }

  /// Returns the message that is being sent, or null.
  [[nodiscard]] const SendRequest* message() const { return sends_.front(); }

  /// Drops all messages and queues one last frame with the text `said`. A partly sent frame is completed from a copy, so that the stream
  /// stays well-formed.
  void finish(Frame last, std::string_view said) {
    last.length = static_cast<std::uint32_t>(said.size());
    std::vector<std::byte> words;
    if (note_sent_ > 0) {
      const auto* note = reinterpret_cast<const std::byte*>(&notes_.front());
      words.assign(note + note_sent_, note + sizeof(Frame));
    }
    if (sends_.front() != nullptr && sent_ > 0) {
      const auto* header = reinterpret_cast<const std::byte*>(&frame_);
      if (sent_ < sizeof(Frame)) words.assign(header + sent_, header + sizeof(Frame));
      const std::byte* payload = sends_.front()->data + before_;
      words.insert(words.end(), payload + (sent_ < sizeof(Frame) ? 0 : sent_ - sizeof(Frame)), payload + frame_.length);
    }
    const auto* header = reinterpret_cast<const std::byte*>(&last);
    const auto* letters = reinterpret_cast<const std::byte*>(said.data());
    words.insert(words.end(), header, header + sizeof(Frame));
    words.insert(words.end(), letters, letters + said.size());
    last_words_ = std::move(words);
    last_words_sent_ = 0;
    drop();
  }

  /// Drops all messages and notes.
  void drop() noexcept {
    sends_.clear();
    notes_.clear();
    note_sent_ = 0;
  }
  /// Returns whether a message has been sent in part.
  [[nodiscard]] bool within_message() const { return sends_.front() != nullptr && (sent_ > 0 || before_ > 0); }

 private:
  static constexpr int frames_at_once = 4;
  static constexpr std::size_t most_notes = 64;
  static constexpr std::size_t notes_at_first = 2;  // reserved, so that a step that has to wait does not allocate

  [[nodiscard]] bool has_note() const { return !notes_.empty(); }
  std::size_t next_of_note(std::array<iovec, 2>& parts) {
    parts[0] = {reinterpret_cast<std::byte*>(&notes_.front()) + note_sent_, sizeof(Frame) - note_sent_};
    parts[1] = {};
    return parts[0].iov_len;
  }
  void advance_note(std::size_t bytes) {
    note_sent_ += bytes;
    if (note_sent_ < sizeof(Frame)) return;
    note_sent_ = 0;
    notes_.erase(notes_.begin());
  }

  void begin() {
    before_ = 0;
    frame_ = {.kind = Frame::Kind::message, .length = length_of_next(), .envelope = sends_.front()->envelope};
    sent_ = 0;
  }
  [[nodiscard]] std::uint32_t length_of_next() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(sends_.front()->envelope.bytes - before_, Frame::capacity));
  }

  std::size_t next_of_message(std::array<iovec, 2>& parts) {
    const std::size_t header = sent_ < sizeof(Frame) ? sizeof(Frame) - sent_ : 0;
    const std::size_t payload = sent_ < sizeof(Frame) ? 0 : sent_ - sizeof(Frame);
    parts[0] = {reinterpret_cast<std::byte*>(&frame_) + sizeof(Frame) - header, header};
    parts[1] = {const_cast<std::byte*>(sends_.front()->data) + before_ + payload, frame_.length - payload};
    return parts[0].iov_len + parts[1].iov_len;
  }
  std::size_t next_of_last_words(std::array<iovec, 2>& parts) {
    parts[0] = {last_words_.data() + last_words_sent_, last_words_.size() - last_words_sent_};
    parts[1] = {};
    return parts[0].iov_len;
  }

  void advance(std::size_t bytes) {
    if (sends_.front() == nullptr) {
      last_words_sent_ += bytes;
      return;
    }
    sent_ += bytes;
    if (sent_ < sizeof(Frame) + frame_.length) return;
    before_ += frame_.length;
    sent_ = 0;
    if (before_ < sends_.front()->envelope.bytes) {
      frame_ = {.kind = Frame::Kind::more, .length = length_of_next()};
      return;
    }
    SendRequest& sent = *sends_.front();
    sends_.pop_front();
    if (sends_.front() != nullptr) begin();
    sent.done.store(true, std::memory_order_release);  // from here on its owner may use it again
  }

  Queue<SendRequest> sends_;       // the first one is being sent
  Frame frame_;                    // the frame that is being sent
  std::size_t sent_ = 0;           // bytes of it that have been sent, header included
  std::uint64_t before_ = 0;       // bytes of the message in earlier frames
  std::optional<Envelope> noted_;  // the collective of the last note
  std::vector<Frame> notes_;       // to be sent, in this order
  std::size_t note_sent_ = 0;      // bytes of the first note that have been sent
  std::vector<std::byte> last_words_;
  std::size_t last_words_sent_ = 0;
  bool broken_ = false;
};

}  // namespace pdp::comm::stream
