#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <pdp/core/requirements.hpp>

namespace pdp::rpc {

/// The number of a value or an object: of the result of a call, or of an object that a call constructs. The rank that makes the call
/// chooses the number, so it can refer to the result before the call has arrived at the other rank.
struct SlotId {
  std::uint64_t number = 0;  // unique among the slots that `maker` has numbered; 0: no slot
  std::int32_t maker = -1;   // the rank that chose the number

  explicit operator bool() const { return number != 0; }
  friend bool operator==(const SlotId&, const SlotId&) = default;
  /// The number under which the value of this slot arrives at a rank that it is forwarded to. It differs from that of the answer to the
  /// caller, since both may arrive at one rank: {7, 0} is the answer to rank 0, and {7, ~0} the same value as an argument.
  [[nodiscard]] SlotId delivery() const { return {number, ~maker}; }
};

}  // namespace pdp::rpc

template <>
struct std::hash<pdp::rpc::SlotId> {
  std::size_t operator()(const pdp::rpc::SlotId& id) const noexcept {
    return std::hash<std::uint64_t>{}(id.number * 0x9e3779b97f4a7c15ULL + static_cast<std::uint32_t>(id.maker));
  }
};
