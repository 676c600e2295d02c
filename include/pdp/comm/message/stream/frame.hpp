#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <pdp/comm/envelope.hpp>

namespace pdp::comm::stream {

/// What stands before every piece of a connection's stream. A message longer than one frame goes on in others, so that word of a failure
/// never has to wait for more than the rest of a frame, and need not wait for memory that is no longer the transport's to read.
struct Frame {
  enum class Kind : std::uint32_t {
    message = 1,  // the beginning of a message; its envelope is valid
    more = 2,     // goes on with the message
    bye = 3,      // the last frame of a rank that has ended its part
    failure = 4,  // the last frame of a world that has failed: the text follows; tag and root of the envelope are its kind and rank
    waiting = 5,  // a note between frames: the envelope is that of a collective in which the sender has waited for long
    beat = 6,     // on a pulse, which carries no messages: the sender is alive
    probe = 7     // a Probe between frames; see probe_frame.hpp
  };
  static constexpr std::size_t capacity = 256 * 1024;  // bytes of a message in one frame; a multiple of every element
  static constexpr std::size_t longest_text = 4096;

  Kind kind = Kind::message;
  std::uint32_t length = 0;  // bytes in this frame, after the header
  std::uint64_t reserved = 0;
  Envelope envelope{};
};
static_assert(sizeof(Frame) == 64 && std::is_trivially_copyable_v<Frame>);

/// What a claimed length may not exceed, so that sums of lengths cannot overflow. Memory is taken as bytes arrive, not as they are claimed.
inline constexpr std::uint64_t longest_message = std::uint64_t{1} << 48;

}  // namespace pdp::comm::stream
