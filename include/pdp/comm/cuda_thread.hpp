#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/backend/device_calls.hpp>
#include <pdp/comm/basic_communicator.hpp>

namespace pdp::comm {

namespace cuda_thread {
struct Call;
class Group;
using Stream = DeviceStream;

// What a WorkHandle does with its call.
bool is_done(Group& group, Call& call);
void finish(Group& group, Call& call);
void finish_on(Group& group, Call& call, Stream stream);
void drop(Group& group, Call& call) noexcept;
}  // namespace cuda_thread

extern template class DeviceCalls<cuda_thread::Group, cuda_thread::Call>;

/// One rank of a group of threads with a GPU each. Calls run on a stream of their group, after all that the callers' streams held when they
/// were made. Defined in pdp/comm/cuda_thread/source.hpp.
class CudaThreadCalls : public DeviceCalls<cuda_thread::Group, cuda_thread::Call> {
 public:
  static constexpr bool rank_ordered = true;
  static constexpr bool fails_fast = true;

  using DeviceCalls::DeviceCalls;

  [[nodiscard]] CudaThreadCalls split(int color, int key) { return CudaThreadCalls{part(color, key)}; }
};
static_assert(AllocatesRegions<CudaThreadCalls> && ExchangesRecords<CudaThreadCalls>);

/// Ranks that are threads of one process with a GPU each, of which several may be the same one: each rank has streams of its own there.
/// A program links CMake's pdp::cuda, or has one source that includes pdp/comm/cuda_thread/source.hpp beside pdp's kernels.
///
/// - Values lie in memory of the rank's GPU: from world.allocate<T>(count), a cuda::Memory, or cudaMalloc. The GPUs reach each other's.
/// - A call comes after what the caller's stream holds. A blocking verb returns when it is complete: values may be read then. An
///   asynchronous one returns at once; Work::wait() keeps the thread until it is complete, Work::wait_on(stream) a stream.
/// - Each group has a stream of its own on each rank. Its calls move while a rank makes, looks at or waits for any call of its world, or
///   calls progress().
/// - Reductions are in the order of ranks: the bits are those of comm::Thread.
/// - Ranks whose calls differ find out, as do those whose peer has left or failed. Nothing waits for longer than the deadline.
/// - CUDA's current device is the thread's own to choose.
class CudaThread : public BasicCommunicator<CudaThreadCalls> {
 public:
  /// What a command line calls it: --comm cuda_thread.
  static constexpr std::string_view name{"cuda_thread"};

  CudaThread(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] CudaThread split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// All ranks of a new world, over the GPUs in turn; each goes to a thread of its own. Throws ConfigError where there is no driver or no
  /// GPU, or where two GPUs do not reach each other's memory.
  static std::vector<CudaThread> world(int size);
  /// A rank on each of these GPUs.
  static std::vector<CudaThread> world_on(const std::vector<int>& devices);

  [[nodiscard]] int device() const { return erased().device(); }
  /// The stream whose work each call comes after; null: the default stream of the rank's GPU.
  [[nodiscard]] cuda_thread::Stream caller() const { return erased().caller(); }
  /// For all groups of this world.
  void caller(cuda_thread::Stream stream) { erased().caller(stream); }
};

static_assert(Communicator<CudaThread> && HasReduceScatter<CudaThread> && HasDeviceBuffers<CudaThread> && RankOrdered<CudaThread> &&
              FailsFast<CudaThread>);

}  // namespace pdp::comm
