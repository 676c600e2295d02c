#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/engine/after_device.hpp>

namespace pdp::engine {

/// Calls of a group with values of the host, for what ranks tell each other beside a step. Where the group's calls take memory of a device,
/// copies go there and come back.
template <comm::Communicator C, class D>
class HostCalls {
 public:
  /// It borrows both.
  HostCalls(C& group, const D& device) : group_{group}, device_{device} {}

  template <class E, class Operation>
  void all_reduce(std::span<E> values, Operation operation) {
    in_place(values, [&](std::span<E> there) { group_.all_reduce(there, operation); });
  }
  template <class E>
  void broadcast(std::span<E> values, int root) {
    in_place(values, [&](std::span<E> there) { group_.broadcast(there, root); });
  }
  template <class E>
  void all_gather(std::span<const E> own, std::span<E> all) {
    apart(own, all, [&](std::span<const E> from, std::span<E> to) { group_.all_gather(from, to); });
  }
  /// `all`: on the root; `counts`: elements of each rank.
  template <class E>
  void gather(std::span<const E> own, std::span<E> all, std::span<const std::size_t> counts, int root) {
    apart(own, all, [&](std::span<const E> from, std::span<E> to) { group_.gather(from, to, counts, root); });
  }

 private:
  template <class E, class Call>
  void in_place(std::span<E> values, Call&& call) {
    if constexpr (comm::HasDeviceBuffers<C>) {
      const AfterDevice after{group_, device_};
      auto there = copy_of(std::span<const E>{values});
      call(there.span());
      std::ranges::copy(on_host(device_, std::span<const E>{there.span()}), values.begin());
    } else {
      call(values);
    }
  }
  template <class E, class Call>
  void apart(std::span<const E> from, std::span<E> to, Call&& call) {
    if constexpr (comm::HasDeviceBuffers<C>) {
      const AfterDevice after{group_, device_};
      const auto from_there = copy_of(from);
      auto to_there = allocate<E>(device_, as_index(to.size()));
      call(from_there.span(), to_there.span());
      std::ranges::copy(on_host(device_, std::span<const E>{to_there.span()}), to.begin());
    } else {
      call(from, to);
    }
  }
  template <class E>
  auto copy_of(std::span<const E> values) {
    auto there = allocate<E>(device_, as_index(values.size()));
    upload(device_, values, there.data());
    return there;
  }

  C& group_;
  const D& device_;
};

}  // namespace pdp::engine
