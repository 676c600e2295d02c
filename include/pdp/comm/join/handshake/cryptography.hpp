#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#if __has_include(<openssl/hmac.h>)
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#else
#error "ranks that are processes need OpenSSL's libcrypto (Debian: libssl-dev), and the CMake target pdp::launch, pdp::tcp or pdp::shm"
#include <see the error above>
#endif

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

/// The cryptography of the handshake, by OpenSSL's libcrypto. Compiled once for a program; see pdp/launch/start/source.hpp.
namespace pdp::comm::handshake {

/// The result of HMAC-SHA256.
using Tag = std::array<unsigned char, 32>;

/// Computes HMAC-SHA256 (RFC 2104). Throws Error if the library cannot, which means that it lacks memory.
inline Tag hmac(std::string_view key, std::string_view message) {
  Tag tag{};
  unsigned int bytes = 0;
  const auto* const words = reinterpret_cast<const unsigned char*>(message.data());
  const char* const key_bytes = key.empty() ? "" : key.data();  // null would mean the key of an earlier call
  if (::HMAC(::EVP_sha256(), key_bytes, as_int(key.size()), words, message.size(), tag.data(), &bytes) == nullptr || bytes != tag.size())
    throw Error{"OpenSSL's libcrypto cannot compute HMAC-SHA256 here"};
  return tag;
}

/// Compares in constant time, so that the time does not show the position of a difference.
inline bool equal(const Tag& one, const Tag& other) { return ::CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0; }

/// Returns random bytes that cannot be guessed. Throws Error if the system provides none.
template <std::size_t size>
std::array<unsigned char, size> draw() {
  std::array<unsigned char, size> bytes{};
  if (::RAND_bytes(bytes.data(), as_int(size)) != 1) throw Error{"OpenSSL's libcrypto got no random bytes from the system"};
  return bytes;
}

template <std::size_t size>
std::string_view view(const std::array<unsigned char, size>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

}  // namespace pdp::comm::handshake
