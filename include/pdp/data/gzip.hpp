#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

/// Whether the input begins as a gzip file does (RFC 1952).
inline bool is_gzip(const Input& input) {
  std::array<std::byte, 2> begin{};
  return input.read_at(0, begin) == begin.size() && begin == std::array{std::byte{0x1f}, std::byte{0x8b}};
}

/// Unpacks a gzip file of one member piece by piece. Stricter than zlib's gzread, which takes a truncated file for a short one, and ignores
/// what follows the end: here both are FileErrors, and so is a wrong checksum.
class GzipBytes {
 public:
  explicit GzipBytes(const Input& input) : name_{input.name()}, packed_{input}, buffer_(64 * 1024) {
    constexpr int gzip_window = 15 + 16;  // the largest window; 16 asks for the gzip header and its checksum
    if (inflateInit2(&state_, gzip_window) != Z_OK) throw FileError{text(name_, ": cannot unpack it: zlib found no memory. Free some.")};
  }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;
  ~GzipBytes() { inflateEnd(&state_); }

  /// Fills `bytes` and returns how many there were: fewer than asked for only at the end.
  std::size_t read(std::span<std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size() && !ended_) {
      refill();
      const std::span piece = bytes.subspan(done, std::min(bytes.size() - done, largest_piece));
      state_.next_out = reinterpret_cast<Bytef*>(piece.data());
      state_.avail_out = static_cast<uInt>(piece.size());
      const int status = inflate(&state_, Z_NO_FLUSH);
      done += piece.size() - state_.avail_out;
      if (status == Z_STREAM_END)
        end();
      else if (status != Z_OK)
        damaged(state_.msg != nullptr ? state_.msg : "the stream is not complete");
    }
    return done;
  }

 private:
  static constexpr std::size_t largest_piece = std::size_t{1} << 30;  // zlib counts in 32 bits

  void refill() {
    if (state_.avail_in > 0) return;
    state_.avail_in = static_cast<uInt>(packed_.read(buffer_));
    state_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    if (state_.avail_in == 0) damaged("the file ends in the middle of the gzip stream: it is truncated");
  }

  void end() {
    ended_ = true;
    if (state_.avail_in > 0 || packed_.read(std::span{buffer_}.first(1)) > 0) damaged("there are bytes after the end of the gzip stream");
  }

  [[noreturn]] void damaged(const char* found) const {
    throw FileError{text(name_, ": expected a whole gzip file, found a damaged one (", found, "). Copy or download the file again.")};
  }

  std::string name_;
  InputBytes packed_;
  std::vector<std::byte> buffer_;
  z_stream state_{};
  bool ended_ = false;
};

/// Reads a file from its beginning on, plain or packed by gzip, which its contents tell and not its name.
class UnpackedBytes {
 public:
  explicit UnpackedBytes(const Input& input) : plain_{input} {
    if (is_gzip(input))
      packed_.emplace(input);
    else
      known_size_ = input.size();
  }

  /// Fills `bytes` and returns how many there were: fewer than asked for only at the end.
  std::size_t read(std::span<std::byte> bytes) { return packed_ ? packed_->read(bytes) : plain_.read(bytes); }

  /// Bytes of a plain file; 0 of a packed one, which tells only when it has been unpacked.
  [[nodiscard]] std::size_t known_size() const { return known_size_; }

 private:
  InputBytes plain_;
  std::optional<GzipBytes> packed_;
  std::size_t known_size_ = 0;
};

}  // namespace pdp::data
