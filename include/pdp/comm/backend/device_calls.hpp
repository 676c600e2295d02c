#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/work_handle.hpp>

// The type that cudaStream_t points to.
struct CUstream_st;

namespace pdp::comm {

using DeviceStream = CUstream_st*;  // cudaStream_t

/// Calls that take device memory. Each call runs on a stream of its group, after the work that the caller's stream held when the call was
/// made. Group and Call need not be complete types here: the source of a backend instantiates this template, and its header declares that
/// (extern template).
///
/// The backend declares, in the namespace of Group:
/// - Group::rank(), size(), exchange_records(mine, all, verb), and common(), which returns the state shared by the groups of one rank, with
///   device(), caller(), deadline(), progress() and abort(reason);
/// - begin(group, request), which returns a Call; allocate_for(group, bytes); split_off(group, color, key); the functions that WorkHandle
///   calls.
template <class Group, class Call>
class DeviceCalls {
 public:
  static constexpr bool device_buffers = true;

  /// Its wait_on(stream) makes a stream wait for the call instead of the thread.
  using Work = WorkHandle<Group, Call>;

  explicit DeviceCalls(std::shared_ptr<Group> group) : group_{std::move(group)} {}
  DeviceCalls(DeviceCalls&&) noexcept = default;
  DeviceCalls& operator=(DeviceCalls&&) noexcept = default;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] int device() const;
  /// Returns the caller's stream.
  [[nodiscard]] DeviceStream caller() const;
  void caller(DeviceStream stream);
  [[nodiscard]] Duration deadline() const;
  void deadline(Duration duration);
  /// Advances calls that need the host, as far as possible without waiting. Throws the error that has ended the world, if there is one.
  void progress();
  void abort(const std::string& reason);

  [[nodiscard]] Work start(const Request& request);
  void exchange_records(std::span<const std::byte> mine, std::span<std::byte> all);
  [[nodiscard]] Region allocate(std::size_t bytes);

 protected:
  [[nodiscard]] Group& group() const { return *group_; }
  /// Returns the group of the ranks that pass the same color; see BasicCommunicator::split.
  [[nodiscard]] std::shared_ptr<Group> part(int color, int key);

 private:
  std::shared_ptr<Group> group_;
};

template <class Group, class Call>
int DeviceCalls<Group, Call>::rank() const {
  return group_->rank();
}
template <class Group, class Call>
int DeviceCalls<Group, Call>::size() const {
  return group_->size();
}
template <class Group, class Call>
int DeviceCalls<Group, Call>::device() const {
  return group_->common().device();
}
template <class Group, class Call>
DeviceStream DeviceCalls<Group, Call>::caller() const {
  return group_->common().caller();
}
template <class Group, class Call>
void DeviceCalls<Group, Call>::caller(DeviceStream stream) {
  group_->common().caller(stream);
}
template <class Group, class Call>
Duration DeviceCalls<Group, Call>::deadline() const {
  return group_->common().deadline();
}
template <class Group, class Call>
void DeviceCalls<Group, Call>::deadline(Duration duration) {
  group_->common().deadline(duration);
}
template <class Group, class Call>
void DeviceCalls<Group, Call>::progress() {
  group_->common().progress();
}
template <class Group, class Call>
void DeviceCalls<Group, Call>::abort(const std::string& reason) {
  if (group_) group_->common().abort(reason);  // a moved-from object has no world to end
}
template <class Group, class Call>
typename DeviceCalls<Group, Call>::Work DeviceCalls<Group, Call>::start(const Request& request) {
  return {*group_, begin(*group_, request)};
}
template <class Group, class Call>
void DeviceCalls<Group, Call>::exchange_records(std::span<const std::byte> mine, std::span<std::byte> all) {
  group_->exchange_records(mine, all, Verb::all_gather);
}
template <class Group, class Call>
Region DeviceCalls<Group, Call>::allocate(std::size_t bytes) {
  return allocate_for(group_, bytes);
}
template <class Group, class Call>
std::shared_ptr<Group> DeviceCalls<Group, Call>::part(int color, int key) {
  return split_off(group_, color, key);
}

/// Calls group.check_memory(), which may throw, for the memory that a call reads and writes on this rank.
template <class Group>
void check_memory(const Group& group, const Request& request) {
  const auto check = [&](const ErasedSpan& memory) { group.check_memory(request.verb, memory); };
  if (has_shards(request.verb)) {
    check(request.shard());
    if (!has_rooted_whole(request.verb) || group.rank() == request.root) check(request.whole());
  } else {
    check(request.in);
    if (request.out.data != request.in.data) check(request.out);
  }
}

}  // namespace pdp::comm
