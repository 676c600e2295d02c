#pragma once

/// Definitions of pdp/comm/cuda_thread.hpp. They need the headers of the CUDA toolkit, so pdp includes them in src/cuda_thread.cpp only.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/backend/device_calls.hpp>
#include <pdp/comm/backend/members_of_color.hpp>
#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/cuda_thread/calls.hpp>
#include <pdp/comm/cuda_thread/group.hpp>
#include <pdp/comm/cuda_thread/messages.hpp>
#include <pdp/comm/cuda_thread/peers.hpp>
#include <pdp/comm/cuda_thread/waits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cuda/detail/devices.hpp>

namespace pdp::comm {

namespace cuda_thread {

bool is_done(Group& group, Call& call) { return group.owner().done(call); }
void finish(Group& group, Call& call) { group.owner().finish(call); }
void finish_on(Group& group, Call& call, Stream stream) { group.owner().finish_on(call, stream); }
void drop(Group& group, Call& call) noexcept { group.owner().abandon(call); }

/// Allocates zeroed memory of this rank's GPU by cudaMalloc. The other ranks' GPUs can access it.
inline Region allocate_for(const std::shared_ptr<Group>& group, std::size_t bytes) {
  group->owner().check();
  if (bytes == 0) return {};
  const int device = group->owner().device();
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

/// Returns the group of the ranks that pass the same colour. Every rank of `group` must call it.
inline std::shared_ptr<Group> split_off(const std::shared_ptr<Group>& group, int color, int key) {
  std::vector<ColorAndKey> all(as_size(group->size()));
  const ColorAndKey mine{color, key};
  group->exchange_records(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}), Verb::split);
  const std::vector<int> members = members_of_color(all, color);
  std::vector<int> in_world;
  for (const int member : members) in_world.push_back(group->rank_in_world(member));
  const std::uint64_t channel = group->owner().world().channel(group->channel(), group->calls(), color);
  return std::make_shared<Group>(group->shared_owner(), channel, std::move(in_world), place_among(members, group->rank()));
}

/// Enables GPU `from` to access the memory of GPU `to`. Throws ConfigError if that is not possible. The ranks are named in the error.
inline void open(int rank, int from, int other_rank, int to) {
  if (from == to) return;
  int can = 0;
  cuda::check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, from, to));
  if (can == 0)
    throw ConfigError{text("GPU ", from, " of rank ", rank, " has no peer access to GPU ", to, " of rank ", other_rank,
                           "; use GPUs that have it, or comm::Nccl")};
  const cuda::OnDevice on{from};
  const cudaError_t result = cudaDeviceEnablePeerAccess(to, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    cuda::check("cudaDeviceEnablePeerAccess", result);
}

}  // namespace cuda_thread

template class DeviceCalls<cuda_thread::Group, cuda_thread::Call>;

std::vector<CudaThread> CudaThread::world(int size) {
  if (size < 1) throw ConfigError{text("a world needs at least 1 rank; ", size, " were requested")};
  const int count = cuda::count_devices("threads cannot use GPUs", "use comm::Thread, and compute on the CPU");
  std::vector<int> devices;
  for (int rank = 0; rank < size; ++rank) devices.push_back(rank % count);
  return world_on(devices);
}

std::vector<CudaThread> CudaThread::world_on(const std::vector<int>& devices) {
  const int count = cuda::count_devices("threads cannot use GPUs", "use comm::Thread, and compute on the CPU");
  const auto size = as_int(devices.size());
  if (size < 1 || devices.size() > cuda::most_sources)
    throw ConfigError{text("a process can have 1 to ", cuda::most_sources, " GPU ranks; ", size, " were requested")};
  std::vector<int> ranks(devices.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  for (const int rank : ranks) {
    const int device = devices[as_size(rank)];
    if (device < 0 || device >= count)
      throw ConfigError{text("rank ", rank, " is set to use GPU ", device, ", but this process may use ", count,
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

static_assert(Communicator<CudaThread> && HasReduceScatter<CudaThread> && HasDeviceBuffers<CudaThread> && RankOrdered<CudaThread> &&
              FailsFast<CudaThread>);

}  // namespace pdp::comm
