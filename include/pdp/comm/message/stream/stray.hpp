#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include <pdp/comm/envelope.hpp>

namespace pdp::comm::stream {

/// An unexpected message: one that arrived, at least in part, before its receive was posted.
struct Stray {
  Envelope envelope;
  std::unique_ptr<std::byte[]> bytes;
  std::size_t capacity = 0;
  std::size_t filled = 0;
  Stray* next = nullptr;

  /// Returns memory for `more` bytes behind those that have arrived. Memory grows frame by frame, never by the claimed length of a message.
  std::byte* room(std::size_t more) {
    if (filled + more > capacity) grow(std::max(filled + more, 2 * capacity));
    return bytes.get() + filled;
  }
  void grow(std::size_t to) {
    std::unique_ptr<std::byte[]> larger{new std::byte[to]};  // not zeroed, so that the system provides only the pages that are written
    if (filled > 0) std::memcpy(larger.get(), bytes.get(), filled);
    bytes = std::move(larger);
    capacity = to;
  }
};

/// A free list of strays. It starts with `count` strays of 1 MiB of memory each, which the system provides only when it is written. So a
/// rank that is late for the first time at step 1000 allocates nothing.
class Strays {
 public:
  explicit Strays(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      give_back(fresh());
      free_->grow(first_capacity);
    }
  }

  /// Returns a stray, with or without memory. A new stray has none. Otherwise many small messages that are never received would use up the
  /// address space.
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
