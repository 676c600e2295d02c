#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include <pdp/comm/envelope.hpp>

namespace pdp::comm::stream {

/// A message, or the part of it that is there, which arrived before its receive was posted.
struct Stray {
  Envelope envelope;
  std::unique_ptr<std::byte[]> bytes;
  std::size_t capacity = 0;
  std::size_t filled = 0;
  Stray* next = nullptr;

  /// Room for `more` bytes. Memory grows with what has arrived, never with what is only claimed.
  std::byte* room(std::size_t more) {
    if (filled + more > capacity) grow(std::max(filled + more, 2 * capacity));
    return bytes.get() + filled;
  }
  void grow(std::size_t to) {
    std::unique_ptr<std::byte[]> larger{new std::byte[to]};  // not zeroed: pages that are never used are never there
    if (filled > 0) std::memcpy(larger.get(), bytes.get(), filled);
    bytes = std::move(larger);
    capacity = to;
  }
};

/// Where strays come from and go back to. It starts with a few, of a size whose memory the system gives only once it is written, so that a
/// rank which runs late for the first time at step 1000 allocates nothing.
class Strays {
 public:
  explicit Strays(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      give_back(fresh());
      free_->grow(first_capacity);
    }
  }

  /// Returns one with or without memory. One that is made here has none: many small messages that nobody receives would use up the address
  /// space.
  Stray& take() {
    if (free_ == nullptr) return fresh();
    Stray& stray = *free_;
    free_ = stray.next;
    return stray;
  }
  void give_back(Stray& stray) noexcept {
    stray.filled = 0;
    stray.next = free_;
    free_ = &stray;
  }

 private:
  static constexpr std::size_t first_capacity = std::size_t{1} << 20;

  Stray& fresh() {
    all_.push_back(std::make_unique<Stray>());
    return *all_.back();
  }

  std::vector<std::unique_ptr<Stray>> all_;
  Stray* free_ = nullptr;
};

}  // namespace pdp::comm::stream
