#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <pdp/comm/failure.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// The header of every message: its group and call, and its length. It is sent as it is in memory; ranks of another byte order are rejected
/// when they connect.
///
/// A receive takes the first message from its peer that has the same channel and tag. All other fields must be equal, too. If one differs,
/// the two ranks have made different calls.
struct Envelope {
  static constexpr std::int32_t collective = -1;  // the tag of messages of a collective; tags of users are not negative
  static constexpr std::uint64_t world = 1;       // the channel of the group of all ranks

  std::uint64_t channel = 0;   // identifies the group
  std::uint64_t sequence = 0;  // number of the collective in its group; 0 for a send
  std::uint64_t count = 0;     // elements of the whole call
  std::uint64_t bytes = 0;     // of the message that follows
  std::int32_t tag = collective;
  std::int32_t root = -1;  // -1: the call has no root
  Verb verb = Verb::send;
  DType type = DType::byte;
  Reduction reduction = Reduction::none;
  std::uint8_t reserved = 0;
  std::uint32_t earlier = 0;  // digest of the earlier collectives of the group; 0 for a send

  friend bool operator==(const Envelope&, const Envelope&) = default;
};
static_assert(sizeof(Envelope) == 48 && std::is_trivially_copyable_v<Envelope>);

/// Returns a digest of the collectives of a group up to this one. It is equal on ranks that have made the same calls in the same order. It
/// mixes the digest of the earlier calls with the fields that ranks must agree on, by Fibonacci hashing (Knuth, The Art of Computer
/// Programming, 6.4).
constexpr std::uint32_t digest(const Envelope& call) {
  const auto mix = [](std::uint64_t with, std::uint64_t value) {
    with = (with ^ value) * 0x9e3779b97f4a7c15;
    return with ^ with >> 32;
  };
  const std::uint64_t kind = static_cast<std::uint64_t>(call.verb) | static_cast<std::uint64_t>(call.type) << 8 |
                             static_cast<std::uint64_t>(call.reduction) << 16 | std::uint64_t{static_cast<std::uint32_t>(call.root)} << 32;
  return static_cast<std::uint32_t>(mix(mix(mix(call.earlier, call.sequence), call.count), kind));
}

/// Describes a call: "all_reduce of 8 float32", "broadcast of 3 int64 with root 2", "send of 2 float32 with tag 7".
std::string describe(const Envelope& call);

/// Returns the failure of two ranks that have made different calls, now or earlier. `one`, `other`: their present calls.
Failure mismatch(const Envelope& one, int rank_of_one, const Envelope& other, int rank_of_other);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/envelope.hpp>
#endif
