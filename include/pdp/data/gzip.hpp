#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

/// Whether the input begins as a gzip file does (RFC 1952).
bool is_gzip(const Input& input);

/// Unpacks a gzip file (RFC 1952) piece by piece: its members one after another, and zero bytes between or after them, as tapes leave.
/// Throws FileError for a truncated member, a wrong checksum or length, and any other bytes after a member. The gzip program ignores such
/// bytes with a warning; here they are an error, since a file with garbage in it is probably damaged.
class GzipBytes {
 public:
  explicit GzipBytes(const Input& input);
  ~GzipBytes();

  /// Fills `bytes` and returns how many there were: fewer than asked for only at the end.
  std::size_t read(std::span<std::byte> bytes);

 private:
  struct State;  // zlib's, and the packed bytes
  std::unique_ptr<State> state_;
};

/// Reads a file from its beginning on, plain or packed by gzip, which its contents tell and not its name.
class UnpackedBytes {
 public:
  explicit UnpackedBytes(const Input& input);

  [[nodiscard]] bool is_packed() const { return packed_.has_value(); }

  /// Fills `bytes` and returns how many there were: fewer than asked for only at the end.
  std::size_t read(std::span<std::byte> bytes);

 private:
  InputBytes plain_;
  std::optional<GzipBytes> packed_;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/gzip.hpp>
#endif
