#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pdp/comm/envelope.hpp>

namespace pdp::comm::together {

/// Where values lie that all ranks of a group see: in which memory, and how far from its beginning.
struct Source {
  std::uint64_t memory = 0;  // its number; 0: in memory that only its own rank sees
  std::uint64_t offset = 0;
};

/// A piece of a rank's values, which all others read. What is short comes with the line that says it is there.
struct Slot {
  static constexpr std::size_t capacity = 64 * 1024;  // bytes; a multiple of every element

  alignas(64) std::atomic<std::uint64_t> piece{0};  // its number; those of a group count from 1
  Envelope envelope;                                // of the call that it belongs to
  std::array<std::byte, 8> few;
  Source source;  // of the call's first piece: where the values lie, if all can see them there; then the slot holds none
  alignas(64) std::array<std::byte, capacity> many;
};
static_assert(offsetof(Slot, source) == 64 && offsetof(Slot, many) == 128);

/// What a rank of a group shows of itself in collectives. It alone writes here.
struct Board {
  static constexpr std::uint64_t slot_count = 8;

  alignas(64) std::atomic<std::uint64_t> summed{0};  // the last piece of which its share is summed
  alignas(64) std::atomic<std::uint64_t> taken{0};   // the last piece with which it has finished
  std::array<Slot, slot_count> slot;
};

}  // namespace pdp::comm::together
