#pragma once

#include <span>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/device.hpp>

namespace pdp::parallel {

/// Each rank of a group gets a sum, or its slice of one, or all get the whole of what each has a slice of. Where a rank is alone nothing
/// travels, nothing is pending, and the device copies what is its own.
template <comm::Communicator C, class E>
[[nodiscard]] typename C::Work start_sum(C& group, std::span<E> values) {
  if (group.size() > 1) return group.all_reduce_async(values, comm::Sum{});
  return {};
}
template <comm::Communicator C, class D, class E>
[[nodiscard]] typename C::Work start_scattered_sum(C& group, const D& device, std::span<const E> whole, std::span<E> slice) {
  if (group.size() > 1) return group.reduce_scatter_async(whole, slice, comm::Sum{});
  if (whole.data() != slice.data()) copy(device, whole, slice.data());
  return {};
}
template <comm::Communicator C, class D, class E>
[[nodiscard]] typename C::Work start_join(C& group, const D& device, std::span<const E> slice, std::span<E> whole) {
  if (group.size() > 1) return group.all_gather_async(slice, whole);
  if (slice.data() != whole.data()) copy(device, slice, whole.data());
  return {};
}

}  // namespace pdp::parallel
