#pragma once

/// The definitions of what pdp/comm/cuda_thread.hpp declares, included by src/cuda_thread.cpp only, as they need the toolkit's headers.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/cuda_thread/calls.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/cuda/detail/devices.hpp>

namespace pdp::comm {

bool CudaThreadCalls::Work::done() { return !pending() || call_->group->owner().done(*call_); }
void CudaThreadCalls::Work::wait() {
  if (!pending()) return;
  cuda_thread::Call& call = *std::exchange(call_, nullptr);
  call.group->owner().finish(call);
}
void CudaThreadCalls::Work::wait_on(cuda_thread::Stream stream) {
  if (!pending()) return;
  cuda_thread::Call& call = *std::exchange(call_, nullptr);
  call.group->owner().finish_on(call, stream);
}
void CudaThreadCalls::Work::abandon() noexcept {
  cuda_thread::Call& call = *std::exchange(call_, nullptr);
  call.group->owner().abandon(call);
}

CudaThreadCalls::CudaThreadCalls(std::shared_ptr<cuda_thread::Group> group) : group_{std::move(group)} {}
CudaThreadCalls::CudaThreadCalls(CudaThreadCalls&&) noexcept = default;
CudaThreadCalls& CudaThreadCalls::operator=(CudaThreadCalls&&) noexcept = default;
CudaThreadCalls::~CudaThreadCalls() = default;

int CudaThreadCalls::rank() const { return group_->rank(); }
int CudaThreadCalls::size() const { return group_->size(); }
int CudaThreadCalls::device() const { return group_->owner().device(); }
cuda_thread::Stream CudaThreadCalls::caller() const { return group_->owner().caller(); }
void CudaThreadCalls::caller(cuda_thread::Stream stream) { group_->owner().caller(stream); }
Duration CudaThreadCalls::deadline() const { return group_->owner().deadline(); }
void CudaThreadCalls::deadline(Duration duration) { group_->owner().deadline(duration); }
void CudaThreadCalls::progress() { group_->owner().advance(); }
void CudaThreadCalls::abort(const std::string& reason) {
  if (!group_) return;  // one that was moved from has no world to end
  group_->owner().end({Failure::Kind::lost, group_->owner().number(), reason});
}

CudaThreadCalls::Work CudaThreadCalls::collective(Verb verb, Memory in, Memory out, int root, Reducer reducer) {
  return Work{cuda_thread::begin(*group_, verb, in, out, root, reducer)};
}
CudaThreadCalls::Work CudaThreadCalls::collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
  return Work{cuda_thread::begin(*group_, verb, whole, shard, counts, root, reducer)};
}
CudaThreadCalls::Work CudaThreadCalls::all_to_all(Memory in, Counts sent, Memory out, Counts received) {
  return Work{cuda_thread::begin(*group_, in, sent, out, received)};
}
CudaThreadCalls::Work CudaThreadCalls::exchange(Memory out, int to, Memory in, int from, int tag) {
  return Work{cuda_thread::begin(*group_, out, to, in, from, tag)};
}
void CudaThreadCalls::exchange_records(std::span<const std::byte> mine, std::span<std::byte> all) {
  group_->exchange_records(mine, all, Verb::all_gather);
}

/// Ordinary memory of the GPU, which those of the other ranks reach.
Region CudaThreadCalls::allocate(std::size_t bytes) {
  group_->owner().check();
  if (bytes == 0) return {};
  const int device = this->device();
  const cuda::OnDevice on{device};
  void* memory = nullptr;
  cuda::check_room("cudaMalloc", cudaMalloc(&memory, bytes), device, bytes);
  std::shared_ptr<void> owner{memory, [device](void* own) {
                                const cuda::OnDevice there{device, std::nothrow};
                                cudaFree(own);
                              }};
  cuda::clear(memory, bytes);
  return {static_cast<std::byte*>(memory), bytes, std::move(owner)};
}

CudaThreadCalls CudaThreadCalls::split(int color, int key) {
  struct Record {
    std::int32_t color, key, rank_in_world;
  };
  std::vector<Record> all(as_size(size()));
  const Record mine{color, key, group_->rank_in_world(rank())};
  group_->exchange_records(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}), Verb::split);
  std::vector<std::pair<int, int>> sorted;  // key, rank in this group
  for (int other = 0; other < size(); ++other)
    if (const Record& record = all[as_size(other)]; record.color == color) sorted.emplace_back(record.key, other);
  std::ranges::sort(sorted);
  std::vector<int> members;
  int own = 0;
  for (const auto& [member_key, member] : sorted) {
    if (member == rank()) own = as_int(members.size());
    members.push_back(all[as_size(member)].rank_in_world);
  }
  const std::uint64_t channel = group_->owner().world().channel(group_->channel(), group_->calls(), color);
  return CudaThreadCalls{std::make_shared<cuda_thread::Group>(group_->shared_owner(), channel, std::move(members), own)};
}

namespace cuda_thread {

/// Lets the GPU of one rank reach memory of another's.
inline void open(int rank, int from, int other_rank, int to) {
  if (from == to) return;
  int can = 0;
  cuda::check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, from, to));
  if (can == 0)
    throw ConfigError{text("GPU ", from, " of rank ", rank, " does not reach the memory of GPU ", to, " of rank ", other_rank,
                           "; give the ranks GPUs that do, or take comm::Nccl")};
  const cuda::OnDevice on{from};
  const cudaError_t result = cudaDeviceEnablePeerAccess(to, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled)
    static_cast<void>(cudaGetLastError());
  else
    cuda::check("cudaDeviceEnablePeerAccess", result);
}

}  // namespace cuda_thread

std::vector<CudaThread> CudaThread::world(int size) {
  if (size < 1) throw ConfigError{text("a world of ", size, " ranks was asked for; it takes at least 1")};
  const int count = cuda::count_devices("threads cannot use GPUs", "take comm::Thread, and compute on the CPU");
  std::vector<int> devices;
  for (int rank = 0; rank < size; ++rank) devices.push_back(rank % count);
  return world_on(devices);
}

std::vector<CudaThread> CudaThread::world_on(const std::vector<int>& devices) {
  const int count = cuda::count_devices("threads cannot use GPUs", "take comm::Thread, and compute on the CPU");
  const auto size = as_int(devices.size());
  if (size < 1 || devices.size() > cuda::most_sources)
    throw ConfigError{text("a world of ", size, " ranks on GPUs was asked for; one process has 1 to ", cuda::most_sources)};
  std::vector<int> ranks(devices.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  for (const int rank : ranks) {
    const int device = devices[as_size(rank)];
    if (device < 0 || device >= count)
      throw ConfigError{text("rank ", rank, " was told to use GPU ", device, ", but this process may use ", count,
                             count == 1 ? " GPU" : " GPUs", "; they count from 0")};
    for (int other = 0; other < rank; ++other) {
      cuda_thread::open(rank, device, other, devices[as_size(other)]);
      cuda_thread::open(other, devices[as_size(other)], rank, device);
    }
  }
  const auto world = std::make_shared<cuda_thread::World>(devices);
  std::vector<CudaThread> all;
  for (const int rank : ranks)
    all.emplace_back(BasicCommunicator{CudaThreadCalls{
        std::make_shared<cuda_thread::Group>(std::make_shared<cuda_thread::Rank>(world, rank), Envelope::world, ranks, rank)}});
  return all;
}

}  // namespace pdp::comm
