#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <pdp/comm/stream/frame.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::tcp {

/// What only the ranks of one job know of it. It keeps apart jobs that run side by side and processes that have nothing to do with any.
using Token = std::array<unsigned char, 16>;

/// The first bytes of every connection, in both directions. What stands before `rank` never changes its place, so that programs of
/// different versions can tell each other so.
struct Hello {
  static constexpr std::array<char, 8> pdp{'p', 'd', 'p', ' ', 't', 'c', 'p', '\n'};
  static constexpr std::uint32_t this_version = 1;
  static constexpr std::uint32_t this_byte_order = 0x01020304;

  std::array<char, 8> magic = pdp;
  std::uint32_t version = this_version;
  std::uint32_t byte_order = this_byte_order;
  std::uint32_t frame_bytes = sizeof(stream::Frame);
  std::uint32_t address_bytes = sizeof(void*);
  Token token{};
  std::int32_t rank = 0;
  std::int32_t size = 1;
};
static_assert(sizeof(Hello) == 48 && std::is_trivially_copyable_v<Hello>);

enum class Verdict {
  welcome,
  stranger,  // nobody of this job, or one who has no business on this connection
  foreign    // of this job, but of a program that this one cannot talk to
};

inline Verdict judge(const Hello& theirs, const Hello& mine) {
  if (theirs.magic != mine.magic || theirs.token != mine.token) return Verdict::stranger;
  if (theirs.version != mine.version || theirs.byte_order != mine.byte_order || theirs.frame_bytes != mine.frame_bytes ||
      theirs.address_bytes != mine.address_bytes)
    return Verdict::foreign;
  return theirs.size == mine.size && theirs.rank >= 0 && theirs.rank < mine.size ? Verdict::welcome : Verdict::stranger;
}

/// What is wrong with a foreigner.
inline std::string describe_foreign(const Hello& theirs, const Hello& mine) {
  const auto order = [](std::uint32_t mark) { return mark == Hello::this_byte_order ? "this machine's" : "another"; };
  return text("rank ", mine.rank, " speaks version ", mine.version, " of pdp's protocol, another rank of its job version ", theirs.version,
              " (byte order: ", order(theirs.byte_order), ", header: ", theirs.frame_bytes, " bytes, here ", mine.frame_bytes,
              "); all ranks must run the same build of the program on machines of one kind");
}

}  // namespace pdp::comm::tcp
