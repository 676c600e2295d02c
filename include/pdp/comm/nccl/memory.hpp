#pragma once

/// Checks and allocation of memory for NCCL's calls.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <pdp/comm/nccl/group.hpp>
#include <pdp/comm/nccl/records.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::nccl {

inline void Group::check_memory(Verb verb, const ErasedSpan& memory) const {
  if (memory.count == 0) return;
  cudaPointerAttributes found{};
  const bool known = cudaPointerGetAttributes(&found, memory.data) == cudaSuccess;
  if (!known) cudaGetLastError();
  if (!known || found.type == cudaMemoryTypeUnregistered)
    throw ConfigError{text(name(verb), " on rank ", rank_, " was given host memory; NCCL needs memory of device ", world_->device(),
                           ": from cudaMalloc, or world.allocate<T>(count)")};
  if (found.type == cudaMemoryTypeDevice && found.device != world_->device())
    throw ConfigError{text(name(verb), " on rank ", rank_, " was given memory of device ", found.device,
                           ", but this rank's calls run on device ", world_->device())};
}

inline void* Group::enroll(void* memory, std::size_t bytes) {
  void* registration = nullptr;
  if (ncclCommRegister(comm(), memory, bytes, &registration) != ncclSuccess) return nullptr;  // calls are only slower without it
  if (registration != nullptr) registrations_.push_back(registration);
  return registration;
}

inline void Group::withdraw(void* registration) noexcept {
  std::erase(registrations_, registration);
  if (comm() != nullptr) ncclCommDeregister(comm(), registration);
}

/// Memory from ncclMemAlloc. It is registered for the calls of a group until the group ends, if NCCL can register it.
class Piece {
 public:
  Piece(const std::shared_ptr<Group>& group, std::size_t bytes)
      : group_{group}, world_{group->shared_world()}, result_{ncclMemAlloc(&memory_, bytes)} {
    if (result_ == ncclSuccess)
      registration_ = group->enroll(memory_, bytes);
    else
      memory_ = nullptr;
  }
  Piece(Piece&&) = delete;
  /// Frees the memory, unless the communicator belongs to the program and has failed. Its calls in flight, which only the program can
  /// abort, may still use the memory.
  ~Piece() {
    withdraw();
    if (memory_ != nullptr && !world_->may_be_at_work()) ncclMemFree(memory_);
  }

  /// Returns null if the allocation failed; result() says why.
  [[nodiscard]] void* memory() const { return memory_; }
  [[nodiscard]] ncclResult_t result() const { return result_; }
  [[nodiscard]] bool is_registered() const { return registration_ != nullptr; }
  /// Ends the registration. The memory stays allocated.
  void withdraw() {
    if (const auto alive = group_.lock(); alive && is_registered()) alive->withdraw(registration_);
    registration_ = nullptr;
  }

 private:
  std::weak_ptr<Group> group_;
  std::shared_ptr<World> world_;
  void *memory_ = nullptr, *registration_ = nullptr;
  ncclResult_t result_;
};

/// Allocates zeroed memory for the calls of a group. NCCL requires that all ranks pass registered memory to a call, or none. So the ranks
/// first tell each other whether theirs is registered. Throws DeviceError if a rank has too little memory, and ConfigError if the sizes
/// differ.
inline Region allocate_for(const std::shared_ptr<Group>& group, std::size_t bytes) {
  enum class Has : std::uint64_t { nothing, memory, registered };
  struct Record {
    std::uint64_t bytes;
    Has has;
  };
  const int rank = group->rank(), size = group->size(), device = group->world().device();
  group->world().check();
  group->synchronise();
  const OnDevice on{device};
  const auto piece = std::make_shared<Piece>(group, std::max(bytes, std::size_t{1}));
  const Record mine{bytes, piece->is_registered() ? Has::registered : piece->memory() != nullptr ? Has::memory : Has::nothing};
  std::vector<Record> all(as_size(size));
  group->exchange_records(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}), Verb::all_gather);
  if (mine.has == Has::nothing)
    throw DeviceError{text("rank ", rank, " could not allocate ", bytes, " bytes on device ", device,
                           ": ncclMemAlloc failed: ", describe_error(piece->result(), nullptr))};
  const auto least = std::ranges::min_element(all, {}, &Record::has);
  if (least->has == Has::nothing)
    throw DeviceError{text("rank ", least - all.begin(), " of ", size, " could not allocate ", least->bytes,
                           " bytes on its device, so no rank allocates; see its output")};
  if (const auto other = std::ranges::find_if(all, [bytes](const Record& each) { return each.bytes != bytes; }); other != all.end())
    throw ConfigError{text("rank ", rank, " allocates ", bytes, " bytes, but rank ", other - all.begin(), " allocates ", other->bytes,
                           "; all ranks must allocate the same size")};
  if (least->has == Has::memory) piece->withdraw();
  if (bytes == 0) return {};
  cuda::clear(piece->memory(), bytes);
  return {static_cast<std::byte*>(piece->memory()), bytes, piece};
}

}  // namespace pdp::comm::nccl
