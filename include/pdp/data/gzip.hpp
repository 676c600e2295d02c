#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

/// Returns whether the input begins with the magic number of gzip (RFC 1952).
bool is_gzip(const Input& input);

/// Decompresses the members of a gzip file (RFC 1952) one after another, piece by piece. Borrows the Input. Zero bytes between or after
/// members (tape padding) are skipped.
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

/// Reads a file sequentially. Decompresses it if it begins with gzip's magic number, whatever its name. Borrows the Input. Throws FileError
/// as GzipBytes does.
class UnpackedBytes {
 public:
  explicit UnpackedBytes(const Input& input);

  /// Returns whether the file is a gzip file.
  [[nodiscard]] bool is_packed() const { return packed_.has_value(); }

  /// Fills `bytes` and returns the number of bytes read, which is less than bytes.size() only at the end.
  std::size_t read(std::span<std::byte> bytes);

 private:
  InputBytes plain_;
  std::optional<GzipBytes> packed_;
};

/// Returns the bytes of a whole file, decompressed if it is a gzip file. Throws FileError as Input and GzipBytes do.
[[nodiscard]] std::vector<std::byte> read_unpacked(const std::filesystem::path& path);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/gzip.hpp>
#endif
