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

/// Memory for the values of calls, from the communicators of the groups that make them: zero at first, and aligned as a Buffer. What a
/// group needs lies in one piece, in the same place of it on each rank.
///
/// A communicator's memory goes back at once, and not as a device's own in the order of the device's stream. So whoever lets go of this
/// waits until the device has carried out all that it was given, for 5 s at most: memory that is still in use then is never given back.
template <comm::Communicator C, class D, Element E>
class CallMemory {
 public:
  /// What a group needs in one piece.
  struct Need {
    int group = -1;  // -1: no group
    Index elements = 0;

    /// Others need it, too, in turn. What several groups need is for none of them to give.
    void share(int with, Index needed) {
      constexpr int several = -2;
      group = elements == 0 || group == with ? with : several;
      elements = std::max(elements, needed);
    }
  };

  CallMemory() = default;
  /// Every rank of a group makes this call, and gives the same needs of that group, in the same order. A group of one rank, which makes no
  /// calls, gets nothing. `device`: which uses it.
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

  /// Empty where there is none.
  [[nodiscard]] std::span<E> operator[](std::size_t need) {
    if (need >= places_.size() || memory_of(need).size() == 0) return {};
    return memory_of(need).span().subspan(places_[need].begin, places_[need].size);
  }
  /// Where it lies in the memory of its group, in elements.
  [[nodiscard]] std::size_t begin(std::size_t need) const { return places_[need].begin; }
  /// Whether this rank sees what the others have for the same need.
  [[nodiscard]] bool is_common(std::size_t need) { return memory_of(need).is_common(); }
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
    } catch (const Error&) {  // the device has failed, and nobody knows what it still does
      return false;
    }
  }

  std::optional<D> device_;
  std::vector<Place> places_;   // of needs
  std::vector<Memory> memory_;  // of groups
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
