#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <pdp/comm/envelope.hpp>

namespace pdp::comm::stream {

/// The header of every piece of a connection's stream. A message longer than one frame continues in further frames. So the report of a
/// failure waits for the rest of one frame at most. The rest of the message, which the transport may no longer read, is not sent.
struct Frame {
  enum class Kind : std::uint32_t {
    message = 1,  // the beginning of a message; its envelope is valid
    more = 2,     // the next part of the message
    bye = 3,      // the last frame of a rank that has ended its part
    failure = 4,  // the last frame of a failed world; a text follows; tag and root of the envelope are the failure's kind and rank
    waiting = 5,  // between frames of messages: the sender has waited for long in the collective with this envelope
    beat = 6,     // a heartbeat, on a pulse connection, which carries no messages
    probe = 7     // a Probe, between frames of messages; see probe_frame.hpp
  };
  static constexpr std::size_t capacity = 256 * 1024;  // bytes of a message in one frame; a multiple of every element size
  static constexpr std::size_t longest_text = 4096;

  Kind kind = Kind::message;
  std::uint32_t length = 0;  // bytes in this frame, after the header
  std::uint64_t reserved = 0;
  Envelope envelope{};
};
static_assert(sizeof(Frame) == 64 && std::is_trivially_copyable_v<Frame>);

/// The largest length that a message may claim, in bytes, so that sums of lengths cannot overflow. Memory grows frame by frame, never by
/// the claimed length of a message.
inline constexpr std::uint64_t longest_message = std::uint64_t{1} << 48;

}  // namespace pdp::comm::stream
