#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// How long a rank that fails, or the launcher of a rank that has ended, may take to tell the others through the job's store: once to reach
/// the store, and once more for the others to read the reason.
inline constexpr std::chrono::seconds time_to_tell{1};

/// A message between a TcpStore and its server after their handshake: a header of fixed size, then the key, then the value. Numbers are in
/// the byte order of the machine; the handshake ensures that both ends have the same.
struct StoreMessage {
  /// `fail`: the value says why the job cannot start. `failed`: the answer to every later request, with that value.
  enum class Kind : std::uint32_t { set, wait, ok, absent, taken, full, add, fail, failed };

  static constexpr std::uint64_t pdp = 0x31'65726f'7473'2064;  // "d store1"
  static constexpr std::uint32_t longest_key = 256;
  static constexpr std::uint32_t longest_value = 64 * 1024;

  std::uint64_t magic = pdp;
  Kind kind = Kind::ok;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
  std::uint32_t milliseconds = 0;  // longest time of a `wait`

  [[nodiscard]] bool sound() const {
    return magic == pdp && kind <= Kind::failed && key_bytes <= longest_key && value_bytes <= longest_value;
  }
};
static_assert(sizeof(StoreMessage) == 24 && std::is_trivially_copyable_v<StoreMessage>);

/// Returns the bytes of a message.
std::string encode(StoreMessage message, std::string_view key, std::string_view value);

/// Returns the new value of a counter after `amount` is added to it. `counter`: its old value, as text. Throws ConfigError if that is not a
/// number, or if the sum overflows.
std::int64_t added(std::string_view key, std::string_view counter, std::int64_t amount);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/store/source/store_protocol.hpp>
#endif
