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

/// What a stream says whose peer takes nothing any more.
inline constexpr std::size_t gone = std::numeric_limits<std::size_t>::max();

/// The sending half of a connection: messages go out in the order in which they were posted, as far as its stream takes them at once.
class Outbox {
 public:
  Outbox() { notes_.reserve(notes_at_first); }

  [[nodiscard]] bool empty() const { return sends_.front() == nullptr && !has_note() && last_words_sent_ == last_words_.size(); }

  void post(SendRequest& send) {
    sends_.push_back(send);
    if (sends_.front() == &send) begin();
  }

  /// Says, before the next message's frame, in which collective this rank waits. Once for each.
  void note(const Envelope& call) {
    if (noted_ && noted_->channel == call.channel && noted_->sequence == call.sequence) return;
    if (note({.kind = Frame::Kind::waiting, .envelope = call})) noted_ = call;
  }
  /// Sends a frame without a payload before the next message's frame. Drops it and returns false if many wait already, as the peer does not
  /// read then.
  bool note(const Frame& frame) {
    if (notes_.size() == most_notes) return false;
    notes_.push_back(frame);
    return true;
  }

  /// Writes what goes at once, up to a few frames, so that a rank which sends without end still reads. Says whether anything moved.
  /// `write(parts)`: gives the bytes that the stream takes at once, or `gone` where it will never take any.
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

  /// Whether the peer takes nothing any more. Why is for the receiving half to find out: its last words may still lie there.
  [[nodiscard]] bool broken() const { return broken_; }

  /// The message on its way, if there is one.
  [[nodiscard]] const SendRequest* message() const { return sends_.front(); }

  /// Lets go of all messages and says one last thing. A frame that has been begun is completed from a copy, so that the stream stays whole.
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
  /// Whether a message has been begun and not ended.
  [[nodiscard]] bool within_message() const { return sends_.front() != nullptr && (sent_ > 0 || before_ > 0); }

 private:
  static constexpr int frames_at_once = 4;
  static constexpr std::size_t most_notes = 64;
  static constexpr std::size_t notes_at_first = 2;  // for which there is room: a step that has to wait does not allocate

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
    sent.done.store(true, std::memory_order_release);  // its owner may use it again from here on
  }

  Queue<SendRequest> sends_;       // the first one is on its way
  Frame frame_;                    // the one on its way
  std::size_t sent_ = 0;           // of it, header included
  std::uint64_t before_ = 0;       // bytes of the message in frames before it
  std::optional<Envelope> noted_;  // the last collective in which this rank has said that it waits
  std::vector<Frame> notes_;       // to go out, in their order
  std::size_t note_sent_ = 0;      // bytes of the first one
  std::vector<std::byte> last_words_;
  std::size_t last_words_sent_ = 0;
  bool broken_ = false;
};

}  // namespace pdp::comm::stream
