#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/engine/groups.hpp>

namespace pdp::engine {

/// Memory for the values that calls of groups read and write. The communicators of the groups allocate it. It is zero at first, and aligned
/// like a Buffer. The memory of a group is one piece, with the same offsets on each rank.
///
/// A communicator's memory is freed at once, unlike a device's own memory, which is freed in the order of the device's stream. So the
/// destructor first waits until the device has finished its work, for 5 s at most. Memory that is still in use then is never freed.
template <comm::Communicator C, class D, Element E>
class CallMemory {
 public:
  /// A piece of memory that a group needs.
  struct Need {
    int group = -1;  // -1: no group
    Index elements = 0;

    /// Adds a use by a group, at another time than earlier uses. Memory that several groups use is not allocated by any of them.
    void share(int with, Index needed) {
      constexpr int several = -2;
      group = elements == 0 || group == with ? with : several;
      elements = std::max(elements, needed);
    }
  };

  CallMemory() = default;
  /// Every rank of a group makes this call, with the same needs of that group in the same order. A group of one rank makes no calls and
  /// gets no memory. `device`: the device that uses the memory.
  CallMemory(const Groups<C>& groups, const D& device, const std::vector<Need>& needs);
  CallMemory(CallMemory&&) noexcept = default;
  CallMemory& operator=(CallMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(places_, other.places_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~CallMemory() {
    if constexpr (comm::HasDeviceBuffers<C>)
      if (!memory_.empty() && !device_is_through()) static_cast<void>(new auto{std::move(memory_)});
  }

  /// Returns the memory for a need; empty if there is none.
  [[nodiscard]] std::span<E> operator[](std::size_t need) {
    if (need >= places_.size() || memory_of(need).size() == 0) return {};
    return memory_of(need).span().subspan(places_[need].begin, places_[need].size);
  }
  /// Returns the offset of a need in the memory of its group, in elements.
  [[nodiscard]] std::size_t begin(std::size_t need) const { return places_[need].begin; }
  /// Returns whether this rank sees the memory of the other ranks for the same need.
  [[nodiscard]] bool is_common(std::size_t need) { return memory_of(need).is_common(); }
  /// Returns the memory of another rank of the group for the same need. Call it only if is_common(need).
  [[nodiscard]] std::span<E> of(int rank, std::size_t need) {
    return memory_of(need).of(rank).subspan(places_[need].begin, places_[need].size);
  }

 private:
  using Memory = comm::Registered<E, comm::HasDeviceBuffers<C>>;
  struct Place {
    std::size_t group = 0, begin = 0, size = 0;
  };
  [[nodiscard]] Memory& memory_of(std::size_t need) { return memory_[places_[need].group]; }
  [[nodiscard]] bool device_is_through() noexcept requires comm::HasDeviceBuffers<C> {
    const auto until = comm::Clock::now() + std::chrono::seconds{5};
    try {
      while (!device_->is_idle()) {
        if (comm::Clock::now() >= until) return false;
        std::this_thread::yield();
      }
      return true;
    } catch (const Error&) {  // the device has failed, and its remaining work is unknown
      return false;
    }
  }

  std::optional<D> device_;
  std::vector<Place> places_;   // [need]
  std::vector<Memory> memory_;  // [group]
};

template <comm::Communicator C, class D, Element E>
CallMemory<C, D, E>::CallMemory(const Groups<C>& groups, const D& device, const std::vector<Need>& needs)
    : device_{device}, places_(needs.size()) {
  for (int number = 0; number < groups.size(); ++number) {
    std::size_t elements = 0;
    for (std::size_t at = 0; at < needs.size(); ++at) {
      if (needs[at].group == number) {
        places_[at] = {memory_.size(), elements, as_size(needs[at].elements)};
        elements += as_size(padded<E>(needs[at].elements));
      }
    }
    const bool calls = elements > 0 && groups[number].size() > 1;
    memory_.push_back(calls ? groups[number].template allocate<E>(elements) : Memory{});
  }
}

}  // namespace pdp::engine
