#pragma once

#include <span>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/device.hpp>

namespace pdp::engine {

/// Calls of a group, which is borrowed as are the spans until the Work is waited for. Where a rank is alone nothing travels, the device
/// copies what is its own, and the Work is empty, which counts as complete.
template <comm::Communicator C, class E>
[[nodiscard]] typename C::Work start_all_reduce(C& group, std::span<E> values) {
  if (group.size() > 1) return group.all_reduce_async(values, comm::Sum{});
  return {};
}
template <comm::Communicator C, class D, class E>
[[nodiscard]] typename C::Work start_reduce_scatter(C& group, const D& device, std::span<const E> whole, std::span<E> slice) {
  if (group.size() > 1) return group.reduce_scatter_async(whole, slice, comm::Sum{});
  if (whole.data() != slice.data()) copy(device, whole, slice.data());
  return {};
}
template <comm::Communicator C, class D, class E>
[[nodiscard]] typename C::Work start_all_gather(C& group, const D& device, std::span<const E> slice, std::span<E> whole) {
  if (group.size() > 1) return group.all_gather_async(slice, whole);
  if (slice.data() != whole.data()) copy(device, slice, whole.data());
  return {};
}

}  // namespace pdp::engine
