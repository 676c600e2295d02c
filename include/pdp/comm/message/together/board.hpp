#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pdp/comm/envelope.hpp>

namespace pdp::comm::together {

/// The location of values that all ranks of a group can access: a memory and an offset in bytes.
struct Source {
  std::uint64_t memory = 0;  // number of the memory; 0 if only this rank can access the values
  std::uint64_t offset = 0;
};

/// A piece of one rank's values, which all other ranks read. Values of up to 8 bytes (`few`) share a cache line with the piece number.
struct Slot {
  static constexpr std::size_t capacity = 64 * 1024;  // bytes; a multiple of every element size

  alignas(64) std::atomic<std::uint64_t> piece{0};  // number of the piece in this slot; the first piece of a group is 1
  Envelope envelope;                                // of the call that the piece belongs to
  std::array<std::byte, 8> few;
  Source source;  // in the first piece of a call: location of the values; if set, the slot holds no values
  alignas(64) std::array<std::byte, capacity> many;
};
static_assert(offsetof(Slot, source) == 64 && offsetof(Slot, many) == 128);

/// The data that a rank of a group publishes in collectives. Only this rank writes to it.
struct Board {
  static constexpr std::uint64_t slot_count = 8;

  alignas(64) std::atomic<std::uint64_t> summed{0};  // this rank has summed its share of the pieces up to this one
  alignas(64) std::atomic<std::uint64_t> taken{0};   // this rank has finished with the pieces up to this one
  std::array<Slot, slot_count> slot;
};

}  // namespace pdp::comm::together
