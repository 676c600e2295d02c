#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

/// Returns whether the input begins with the magic number of gzip (RFC 1952).
bool is_gzip(const Input& input);

/// Decompresses a gzip file (RFC 1952) piece by piece: its members one after another. Zero bytes between or after members (tape padding)
/// are skipped.
///
/// Throws FileError for a truncated member, a wrong checksum or length, and any other bytes after a member. The gzip program ignores such
/// bytes with a warning. Here they are an error, because a file that contains garbage is probably damaged.
class GzipBytes {
 public:
  explicit GzipBytes(const Input& input);
  ~GzipBytes();

  /// Fills `bytes` and returns the number of bytes read, which is less than bytes.size() only at the end.
  std::size_t read(std::span<std::byte> bytes);

 private:
  struct State;  // zlib's state and the compressed input
  std::unique_ptr<State> state_;
};

/// Reads a file sequentially, and decompresses it if it is a gzip file. This is detected from the contents, not the name.
class UnpackedBytes {
 public:
  explicit UnpackedBytes(const Input& input);

  [[nodiscard]] bool is_packed() const { return packed_.has_value(); }

  /// Fills `bytes` and returns the number of bytes read, which is less than bytes.size() only at the end.
  std::size_t read(std::span<std::byte> bytes);

 private:
  InputBytes plain_;
  std::optional<GzipBytes> packed_;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/gzip.hpp>
#endif
