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
  std::optional<int> device{};      // the CUDA device to use; default: by local_rank
  std::optional<int> local_rank{};  // uses device local_rank % devices; default: the device that the fewest ranks of the host use
  Stream caller = nullptr;          // calls run after the work of this stream; null: the default stream
};

// The functions that WorkHandle calls.
bool is_done(Group& group, Call& call);
void finish(Group& group, Call& call);
void finish_on(Group& group, Call& call, Stream stream);
void drop(Group& group, Call& call) noexcept;
}  // namespace nccl

extern template class DeviceCalls<nccl::Group, nccl::Call>;

/// One rank of a group that NCCL connects. Calls run on a stream of their group, after the work that the caller's stream held when they
/// were made. Defined in pdp/comm/nccl/source.hpp.
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

/// Ranks with a GPU each, connected by NVIDIA's NCCL. A program links CMake's pdp::nccl, or has one source that includes
/// pdp/comm/nccl/source.hpp, and links NCCL and the CUDA runtime.
///
/// - Values are in memory of the rank's GPU, from cudaMalloc or world.allocate<T>(count). The host can access neither.
/// - A call runs after the work that the caller's stream holds. A blocking verb returns when it is complete; its values may be read then.
///   An asynchronous verb returns at once. Work::wait() blocks the thread until the call is complete; Work::wait_on(stream) blocks a stream
///   instead.
/// - Each group has a stream of its own, on which its calls and messages run one after another (QueuesMessages). Calls of two groups may
///   overlap. If ranks make two calls in different orders, the calls must be in two groups, for example from world.split(). The engine
///   creates such groups for the messages of a strategy.
/// - If two ranks send messages to each other, both start theirs together: by send_recv, or by world.grouped() with the same messages on
///   both. Otherwise each waits for the other until the deadline.
/// - Tags do not distinguish messages: those between two ranks arrive in the order in which they were sent.
/// - Reductions are NCCL's. An average of floating-point values is a sum of quotients. Min and max of a NaN and a number are undefined.
///   Bitwise reductions throw ConfigError.
/// - Calls whose Work is passed to a stream by wait_on may be captured in a CUDA graph, together with the stream that is their caller.
///   Either all ranks of the group capture a call or none, and they launch together the graphs that they captured together. Destroy the
///   graph before the communicator and everything split from it: their destructors wait for that until the deadline. NCCL's manual
///   recommends one process per GPU in this case.
/// - No wait exceeds the deadline. NCCL reports the death of a rank that is connected by a network (PeerLost, mostly without its number);
///   otherwise the deadline finds it (Timeout). Either error aborts the calls in flight on this rank, and its world stays aborted. NCCL
///   does not inform the other ranks.
/// - Only Checked<Nccl> finds calls that differ between ranks.
class Nccl : public BasicCommunicator<NcclCalls> {
 public:
  /// The name for the command line: --comm nccl.
  static constexpr std::string_view name{"nccl"};
  using Options = nccl::Options;

  /// Uses a communicator that the program already has. pdp never aborts or destroys it, so the program must do so after a failure. The
  /// program keeps it alive until this object and everything made from it are gone, and makes no other calls on it while one is in flight.
  /// `caller`: the stream of the program. If the communicator is a blocking one, pdp's calls that need the other ranks block, too, whatever
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

  [[nodiscard]] int device() const { return erased().device(); }
  /// Returns the stream after whose work each call runs.
  [[nodiscard]] nccl::Stream caller() const { return erased().caller(); }
  /// Sets that stream, for all groups of this world.
  void caller(nccl::Stream stream) { erased().caller(stream); }
};

static_assert(Communicator<Nccl> && HasReduceScatter<Nccl> && RecordsCalls<Nccl> && QueuesMessages<Nccl> && !FailsFast<Nccl>);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_LAUNCH
#include <pdp/launch/start/source.hpp>
#endif
