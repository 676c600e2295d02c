#pragma once

/// Definitions for pdp/data/gzip.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<zlib.h>)
#error "pdp needs zlib (Debian: zlib1g-dev)"
#include <see the error above>
#endif
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/gzip.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

PDP_INLINE bool is_gzip(const Input& input) {
  std::array<std::byte, 2> begin{};
  return input.read_at(0, begin) == begin.size() && begin == std::array{std::byte{0x1f}, std::byte{0x8b}};
}

struct GzipBytes::State {
  explicit State(const Input& input) : name_{input.name()}, packed_{input}, buffer_(64 * 1024) {
    constexpr int gzip_window = 15 + 16;  // 15: the largest window; 16: expect a gzip header and checksum
    if (inflateInit2(&state_, gzip_window) != Z_OK)
      throw FileError{text(name_, ": cannot unpack it: zlib is out of memory. Free some memory.")};
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&state_); }

  std::size_t read(std::span<std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size() && !ended_) {
      if (!refill()) damaged("the file ends in the middle of the gzip stream: it is truncated");
      const std::span piece = bytes.subspan(done, std::min(bytes.size() - done, largest_piece));
      state_.next_out = reinterpret_cast<Bytef*>(piece.data());
      state_.avail_out = static_cast<uInt>(piece.size());
      const int status = inflate(&state_, Z_NO_FLUSH);
      done += piece.size() - state_.avail_out;
      if (status == Z_STREAM_END)
        begin_next_member();
      else if (status != Z_OK)
        damaged(state_.msg != nullptr ? state_.msg : "the stream is not complete");
    }
    return done;
  }

  static constexpr std::size_t largest_piece = std::size_t{1} << 30;  // zlib counts in 32 bits

  /// Reads more compressed bytes if all have been used. Returns whether there are any.
  bool refill() {
    if (state_.avail_in == 0) {
      state_.avail_in = static_cast<uInt>(packed_.read(buffer_));
      state_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    }
    return state_.avail_in > 0;
  }

  void begin_next_member() {
    while (refill() && *state_.next_in == 0) {
      ++state_.next_in;
      --state_.avail_in;
    }
    ended_ = state_.avail_in == 0;
    if (ended_) return;
    if (*state_.next_in != 0x1f) damaged("there are bytes after the end of the gzip stream that do not begin another one");
    inflateReset(&state_);
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

PDP_INLINE GzipBytes::GzipBytes(const Input& input) : state_{std::make_unique<State>(input)} {}
PDP_INLINE GzipBytes::~GzipBytes() = default;
PDP_INLINE std::size_t GzipBytes::read(std::span<std::byte> bytes) { return state_->read(bytes); }

PDP_INLINE UnpackedBytes::UnpackedBytes(const Input& input) : plain_{input} {
  if (is_gzip(input)) packed_.emplace(input);
}
PDP_INLINE std::size_t UnpackedBytes::read(std::span<std::byte> bytes) { return packed_ ? packed_->read(bytes) : plain_.read(bytes); }

PDP_INLINE std::vector<std::byte> read_unpacked(const std::filesystem::path& path) {
  const Input file{path};
  UnpackedBytes bytes{file};
  std::vector<std::byte> all;
  for (std::size_t size = 0, step = 1 << 16;; step = all.size()) {  // doubles
    all.resize(size + step);
    const std::size_t found = bytes.read(std::span{all}.subspan(size));
    size += found;
    if (found == step) continue;
    all.resize(size);
    return all;
  }
}

}  // namespace pdp::data
