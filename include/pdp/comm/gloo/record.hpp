#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <pdp/comm/failure.hpp>

namespace pdp::comm::gloo {

/// The final message of a rank to each other rank: a goodbye or a failure. Its bytes are sent unchanged.
struct Record {
  enum class Kind : std::uint32_t { none, goodbye, failure };

  Kind kind = Kind::none;
  std::int32_t rank = -1;
  Failure::Kind failure = Failure::Kind::lost;
  std::array<std::uint8_t, 3> reserved{};
  std::uint32_t length = 0;
  std::array<char, 1008> text{};

  static Record goodbye() { return {.kind = Kind::goodbye}; }
  static Record of(const Failure& failure) {
    Record record{.kind = Kind::failure, .rank = failure.rank, .failure = failure.kind};
    record.length = static_cast<std::uint32_t>(std::min(failure.message.size(), record.text.size()));
    std::memcpy(record.text.data(), failure.message.data(), record.length);
    return record;
  }
  [[nodiscard]] Failure to_failure() const { return {failure, rank, std::string{text.data(), std::min<std::size_t>(length, text.size())}}; }
};
static_assert(sizeof(Record) == 1024 && std::is_trivially_copyable_v<Record>);

}  // namespace pdp::comm::gloo
