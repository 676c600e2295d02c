#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <pdp/comm/tcp/frame.hpp>
#include <pdp/comm/tcp/stray.hpp>
#include <pdp/comm/transport.hpp>

namespace pdp::comm::tcp {

/// Where bytes go that are not for the caller's memory, or must be combined with it: one for all connections of a rank, since between two reads a
/// connection leaves nothing here (what is too short to use, it carries along).
class Staging {
 public:
  static constexpr std::size_t size = Frame::capacity + 2 * sizeof(Frame);
  [[nodiscard]] std::byte* data() { return bytes_.get(); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static_assert(size % sizeof(Line) == 0);
  std::unique_ptr<Line[]> lines_{new Line[size / sizeof(Line)]};
  std::byte* bytes_() const = delete;
};

}  // namespace pdp::comm::tcp
