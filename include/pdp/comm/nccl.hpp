#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <pdp/comm/backend/device_calls.hpp>
#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/separate_compilation.hpp>

// The type that ncclComm_t points to.
struct ncclComm;

namespace pdp::comm {

namespace nccl {
struct Call;
class Group;
using Stream = DeviceStream;

/// Options of one rank. Unset fields keep their defaults.
struct Options {
  /// The CUDA device to use; by default it follows from local_rank.
  std::optional<int> device{};
  /// Selects device local_rank modulo the number of devices; by default, the device that the fewest ranks of the host use.
  std::optional<int> local_rank{};
  /// Calls run after the work of this stream; null: the default stream.
  Stream caller = nullptr;
};

// The functions that WorkHandle calls.
bool is_done(Group& group, Call& call);
void finish(Group& group, Call& call);
void finish_on(Group& group, Call& call, Stream stream);
void drop(Group& group, Call& call) noexcept;
}  // namespace nccl

extern template class DeviceCalls<nccl::Group, nccl::Call>;

/// One rank of a group that NCCL connects. A call runs on a stream of its group, after the work that the caller's stream held when the call
/// was made. Defined in pdp/comm/nccl/source.hpp.
class NcclCalls : public DeviceCalls<nccl::Group, nccl::Call> {
 public:
  static constexpr bool records_calls = true;
  static constexpr bool queues_messages = true;

  using DeviceCalls::DeviceCalls;

  void begin_group();
  void end_group();
  [[nodiscard]] NcclCalls split(int color, int key) { return NcclCalls{part(color, key)}; }
};
static_assert(AllocatesRegions<NcclCalls> && GroupsCalls<NcclCalls> && ExchangesRecords<NcclCalls>);

/// Ranks with a GPU each, connected by NVIDIA's NCCL. A program links CMake's target pdp::nccl. Without CMake, one source of the program
/// includes pdp/comm/nccl/source.hpp, and the program links NCCL and the CUDA runtime.
///
/// - Values are in memory of the rank's GPU, from cudaMalloc or world.allocate<T>(count). The host can access neither.
/// - A call runs after the work that the caller's stream holds when the call is made. A blocking verb returns when the call is complete;
///   its values may be read then. An asynchronous verb returns at once. Work::wait() blocks the thread until the call is complete;
///   Work::wait_on(stream) blocks a stream instead.
/// - Each group has a stream of its own, on which its calls and messages run one after another (QueuesMessages). Calls of two groups may
///   overlap. If ranks make two calls in different orders, the calls must be in two groups, for example from world.split(). The engine
///   creates such groups for the messages of a strategy.
/// - If two ranks send messages to each other, each rank must start its send and its receive together: by send_recv, or by world.grouped()
///   with the same messages on both ranks. Otherwise each rank waits for the other until the deadline.
/// - Tags do not distinguish messages: those between two ranks arrive in the order in which they were sent.
/// - Reductions are NCCL's. An average of floating-point values is a sum of quotients: values are divided before they are added. Min and
///   max of a NaN and a number are undefined. Bitwise reductions throw ConfigError.
/// - Calls that a stream waits for (wait_on) may be captured in a CUDA graph, together with the caller's stream. Either all ranks of the
///   group capture a call, or none does. Graphs that were captured together must be launched together. Destroy the graph before the
///   communicator and everything split from it: their destructors wait for that until the deadline. NCCL's manual recommends one process
///   per GPU in this case.
/// - No wait exceeds the deadline. NCCL reports the death of a rank that a network connects (PeerLost, mostly without the number of the
///   rank). Otherwise calls throw Timeout at the deadline. Either error aborts the calls in flight on this rank, and its world stays
///   aborted. NCCL does not inform the other ranks.
/// - Only Checked<Nccl> finds calls that differ between ranks.
class Nccl : public BasicCommunicator<NcclCalls> {
 public:
  /// The name for the command line: --comm nccl.
  static constexpr std::string_view name{"nccl"};
  using Options = nccl::Options;

  /// Uses a communicator that the program already has. pdp never aborts or destroys it, so the program must do so after a failure. The
  /// program keeps it alive until this object and everything made from it are gone, and makes no other calls on it while one is in flight.
  /// `caller`: the stream of the program. If `comm` is a blocking communicator, pdp's calls that need the other ranks block, too, whatever
  /// the deadline.
  Nccl(ncclComm* comm, nccl::Stream caller);
  Nccl(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Nccl split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store, and makes this rank's device the current one of the calling thread. Throws ConfigError if
  /// there are too few GPUs or no driver, or if NCCL refuses. Throws Timeout, which names the missing ranks, if they do not come before the
  /// deadline. Throws PeerLost if a rank leaves meanwhile, and DeviceError if the GPU fails.
  static Nccl connect(StoreView store, int rank, int size, TimePoint deadline, Options options);
  static Nccl connect(StoreView store, int rank, int size, TimePoint deadline) { return connect(store, rank, size, deadline, {}); }
  /// Returns whether ranks may share a GPU: NCCL 2.30 and newer allow it if NCCL_MULTI_RANK_GPU_ENABLE=1 is set.
  [[nodiscard]] static bool shares_gpus();

  /// Returns the number of this rank's CUDA device.
  [[nodiscard]] int device() const { return erased().device(); }
  /// Returns the caller's stream. Each call runs after the work that this stream holds.
  [[nodiscard]] nccl::Stream caller() const { return erased().caller(); }
  /// Sets the caller's stream, for all groups of this world.
  void caller(nccl::Stream stream) { erased().caller(stream); }
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_LAUNCH
#include <pdp/launch/start/source.hpp>
#endif
