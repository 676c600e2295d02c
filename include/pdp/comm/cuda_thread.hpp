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

// The functions that WorkHandle calls.
bool is_done(Group& group, Call& call);
void finish(Group& group, Call& call);
void finish_on(Group& group, Call& call, Stream stream);
void drop(Group& group, Call& call) noexcept;
}  // namespace cuda_thread

extern template class DeviceCalls<cuda_thread::Group, cuda_thread::Call>;

/// One rank of a group of threads with a GPU each. A call runs on streams of its group, after the work that the caller's stream of each
/// rank held when that rank made the call. Defined in pdp/comm/cuda_thread/source.hpp.
class CudaThreadCalls : public DeviceCalls<cuda_thread::Group, cuda_thread::Call> {
 public:
  static constexpr bool rank_ordered = true;
  static constexpr bool fails_fast = true;

  using DeviceCalls::DeviceCalls;

  [[nodiscard]] CudaThreadCalls split(int color, int key) { return CudaThreadCalls{part(color, key)}; }
};
static_assert(AllocatesRegions<CudaThreadCalls> && ExchangesRecords<CudaThreadCalls>);

/// Ranks that are threads of one process with a GPU each. Several ranks may use the same GPU; each has its own streams there. A program
/// links CMake's target pdp::cuda. Without CMake, one source of the program includes pdp/comm/cuda_thread/source.hpp, and the program
/// compiles pdp's kernels.
///
/// - Values are in memory of the rank's GPU: from world.allocate<T>(count), a cuda::Memory, or cudaMalloc. The GPUs must be able to access
///   each other's memory.
/// - A call runs after the work that the caller's stream holds when the call is made. A blocking verb returns when the call is complete;
///   its values may be read then. An asynchronous verb returns at once. Work::wait() blocks the thread until the call is complete;
///   Work::wait_on(stream) blocks a stream instead.
/// - Each group has a stream of its own on each rank. Its calls advance while the rank makes, polls or waits for any call of the world, or
///   calls progress().
/// - Reductions are in the order of ranks: the results are bitwise equal to those of comm::Thread.
/// - A rank throws if its calls differ from those of its peers, or if a peer has left or failed. No wait exceeds the deadline.
/// - Calls neither need nor change the current CUDA device of the thread.
class CudaThread : public BasicCommunicator<CudaThreadCalls> {
 public:
  /// The name for the command line: --comm cuda_thread.
  static constexpr std::string_view name{"cuda_thread"};

  CudaThread(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] CudaThread split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Creates all ranks of a new world, and assigns the GPUs to them in turn. `size`: 1 to 64. Move each rank to a thread of its own. Throws
  /// ConfigError if `size` is not allowed, if there is no driver or no GPU, or if two GPUs cannot access the memory of each other.
  static std::vector<CudaThread> world(int size);
  /// The same with one rank for each item of `devices`, on the GPU with that number. Several ranks may have the same GPU.
  static std::vector<CudaThread> world_on(const std::vector<int>& devices);

  /// Returns the number of this rank's CUDA device.
  [[nodiscard]] int device() const { return erased().device(); }
  /// Returns the caller's stream. Each call runs after the work that this stream holds. Null stands for the default stream of the rank's
  /// GPU.
  [[nodiscard]] cuda_thread::Stream caller() const { return erased().caller(); }
  /// Sets the caller's stream, for all groups of this world.
  void caller(cuda_thread::Stream stream) { erased().caller(stream); }
};

}  // namespace pdp::comm
