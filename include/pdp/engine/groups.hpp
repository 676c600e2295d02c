#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// The groups of a plan, by number: the world, which is borrowed, and the groups that are split from it.
template <comm::Communicator C>
class Groups {
 public:
  /// Every rank of the world makes this call.
  Groups(C& world, const plan::Plan& plan);
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  ~Groups();

  [[nodiscard]] int size() const { return as_int(all_.size()); }
  /// Returns the number of ranks of each group.
  [[nodiscard]] std::vector<int> sizes() const;
  /// Returns for each unit whether this rank adds its values in a sum over all ranks. Each rank adds its slice of a sharded unit. Of the
  /// ranks that hold the same whole unit, only the first adds it.
  [[nodiscard]] std::vector<bool> counted_units(const plan::Plan& plan) const;
  [[nodiscard]] C& world() const { return *all_.front(); }
  [[nodiscard]] C& operator[](int number) const { return *all_[as_size(number)]; }

 private:
  std::vector<C> owned_;
  std::vector<C*> all_;
};

template <comm::Communicator C>
Groups<C>::Groups(C& world, const plan::Plan& plan) {
  owned_.reserve(plan.groups.size());
  all_.push_back(&world);
  for (const plan::GroupSpec& group : plan.groups) all_.push_back(&owned_.emplace_back(world.split(group.color, group.key)));
}

template <comm::Communicator C>
Groups<C>::~Groups() = default;

template <comm::Communicator C>
std::vector<int> Groups<C>::sizes() const {
  std::vector<int> sizes;
  for (const C* group : all_) sizes.push_back(group->size());
  return sizes;
}

template <comm::Communicator C>
std::vector<bool> Groups<C>::counted_units(const plan::Plan& plan) const {
  std::vector<bool> counted;
  for (const plan::Unit& unit : plan.units)
    counted.push_back(unit.sharding != plan::Sharding::none || unit.group < 0 || (*this)[unit.group].rank() == 0);
  return counted;
}

/// If calls take device memory, orders the device's computations on these values before the next call. Otherwise does nothing, since the
/// values are complete when a call is made.
template <comm::Communicator C, class D, class... E>
void order_before_call(const D& device, std::span<E>... values) {
  if constexpr (comm::HasDeviceBuffers<C>) (device.join(std::as_bytes(values)), ...);
}

/// Starts a call of a group. The group and the spans are borrowed until the Work is waited for. A group of one rank sends nothing: the
/// device copies the rank's own values, and the Work is empty, which counts as complete.
template <comm::Communicator C, class D, class E>
[[nodiscard]] typename C::Work start_all_reduce(C& group, const D& device, std::span<E> values) {
  if (group.size() == 1) return {};
  order_before_call<C>(device, values);
  return group.all_reduce_async(values, comm::Sum{});
}
template <comm::Communicator C, class D, class E>
[[nodiscard]] typename C::Work start_reduce_scatter(C& group, const D& device, std::span<const E> whole, std::span<E> slice) {
  if (group.size() > 1) {
    order_before_call<C>(device, whole, slice);
    return group.reduce_scatter_async(whole, slice, comm::Sum{});
  }
  if (whole.data() != slice.data()) copy(device, whole, slice.data());
  return {};
}
template <comm::Communicator C, class D, class E>
[[nodiscard]] typename C::Work start_all_gather(C& group, const D& device, std::span<const E> slice, std::span<E> whole) {
  if (group.size() > 1) {
    order_before_call<C>(device, slice, whole);
    return group.all_gather_async(slice, whole);
  }
  if (slice.data() != whole.data()) copy(device, slice, whole.data());
  return {};
}

/// A guard. During its lifetime, each call of a device communicator comes after the work that the device was given before the call. The
/// destructor restores the previous stream, since a world may serve several models, each with a stream of its own. Does nothing if calls
/// take host memory.
template <comm::Communicator C, class D>
class AfterDevice {
 public:
  AfterDevice(C&, const D&) {}
};
template <comm::Communicator C, class D>
requires comm::HasDeviceBuffers<C>
class AfterDevice<C, D> {
 public:
  /// Borrows the communicator.
  AfterDevice(C& world, const D& device) : world_{world}, before_{world.caller()} { world.caller(device.stream()); }
  AfterDevice(const AfterDevice&) = delete;
  AfterDevice& operator=(const AfterDevice&) = delete;
  ~AfterDevice() { world_.caller(before_); }

 private:
  C& world_;
  decltype(world_.caller()) before_;
};

/// Calls of a group with host values, for data that ranks exchange outside of a step. If the group's calls take device memory, the values
/// are copied to the device and back.
template <comm::Communicator C, class D>
class HostCalls {
 public:
  /// Borrows the group and the device.
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
  /// `all`: used on the root only. `counts`: elements of each rank.
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

/// Waits until every rank is ready to throw the same exception. The first rank that throws may end the world, so others may still be in the
/// barrier then. They throw, too.
template <comm::Communicator C>
void meet_before_throwing(C& world) {
  try {
    world.barrier();
  } catch (const CommunicationError&) {  // NOLINT(bugprone-empty-catch): another rank has thrown already
  }
}

}  // namespace pdp::engine
