#pragma once

/// Definitions for pdp/comm/join/store.hpp; see pdp/core/separate_compilation.hpp.

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <pdp/comm/failure.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE std::string encode(const Failure& failure) { return text(as_int(failure.kind), ' ', failure.rank, ' ', failure.message); }
PDP_INLINE Failure decode_failure(std::string_view value) {
  const char* const end = value.data() + value.size();
  int kind = 0, rank = -1;
  const auto first = std::from_chars(value.data(), end, kind);
  const auto second = first.ptr == end ? first : std::from_chars(first.ptr + 1, end, rank);
  if (first.ec != std::errc{} || second.ec != std::errc{} || second.ptr == end || kind < 0 || kind > as_int(Failure::Kind::timeout))
    return {Failure::Kind::lost, -1, std::string{value}};
  return {static_cast<Failure::Kind>(kind), rank, std::string{second.ptr + 1, end}};
}

}  // namespace pdp::comm
