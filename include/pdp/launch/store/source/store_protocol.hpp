#pragma once

/// Definitions for pdp/launch/store/store_protocol.hpp; see pdp/core/separate_compilation.hpp.

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

PDP_INLINE std::string encode(StoreMessage message, std::string_view key, std::string_view value) {
  message.key_bytes = static_cast<std::uint32_t>(key.size());
  message.value_bytes = static_cast<std::uint32_t>(value.size());
  std::string bytes(reinterpret_cast<const char*>(&message), sizeof message);
  return bytes.append(key).append(value);
}

PDP_INLINE std::int64_t added(std::string_view key, std::string_view counter, std::int64_t amount) {
  std::int64_t sum = 0;
  const auto [end, error] = std::from_chars(counter.data(), counter.data() + counter.size(), sum);
  if (error != std::errc{} || end != counter.data() + counter.size() || __builtin_add_overflow(sum, amount, &sum))
    throw ConfigError{text("cannot add ", amount, " to '", key,
                           "' in the job's store: it is not a counter, or the sum is too large; its value is ",
                           in_quotes(counter.substr(0, 40)))};
  return sum;
}

}  // namespace pdp::launch
