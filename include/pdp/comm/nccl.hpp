#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <pdp/comm/backend/device_calls.hpp>
#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/separate_compilation.hpp>

// What ncclComm_t points to.
struct ncclComm;

namespace pdp::comm {

namespace nccl {
struct Call;
class Group;
using Stream = DeviceStream;

/// What a rank may want otherwise than it is without a word.
struct Options {
  std::optional<int> device{};      // that it uses; else as local_rank says
  std::optional<int> local_rank{};  // on its host: it uses the device of this number, in turn; else the first that no rank has
  Stream caller = nullptr;          // the stream whose work calls come after; null: the default stream
};

// What a WorkHandle does with its call.
bool is_done(Group& group, Call& call);
void finish(Group& group, Call& call);
void finish_on(Group& group, Call& call, Stream stream);
void drop(Group& group, Call& call) noexcept;
}  // namespace nccl

extern template class DeviceCalls<nccl::Group, nccl::Call>;

/// One rank of a group that NCCL connects. Calls run on a stream of their group, after all that the caller's stream held when they were
/// made. Defined in pdp/comm/nccl/source.hpp.
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
/// - Values lie in memory of the rank's GPU: from cudaMalloc, or world.allocate<T>(count), whose elements the host cannot touch either.
/// - A call comes after what the caller's stream holds. A blocking verb returns when it is complete: values may be read then. An
///   asynchronous one returns at once; Work::wait() keeps the thread until it is complete, Work::wait_on(stream) a stream.
/// - Each group has a stream of its own on which its calls run one after another, messages too (QueuesMessages), so calls of two groups
///   may run side by side: where the order of two calls on one rank is not that on another, they go in two groups, as of world.split().
///   Messages both ways between ranks start together: by send_recv, or world.grouped() on both, with the same messages between them.
///   Otherwise each waits for the other, until the deadline. A strategy's messages are given such groups by the engine.
/// - Tags do not tell messages apart: those of a pair of ranks arrive in the order in which they were sent.
/// - Reductions are NCCL's: an average of fractions is a sum of quotients, which of a NaN and a number is smaller is not defined, and
///   there is none by bits (ConfigError).
/// - Calls whose Work is given to a stream, by wait_on, may be recorded in a CUDA graph with the stream that is their caller: by all ranks
///   of the group or by none, and graphs that were recorded together are launched together. The graph goes before the communicator and all
///   that was split from it, which wait for that until the deadline. NCCL's manual recommends a process for each GPU then.
/// - Nothing waits for longer than the deadline. NCCL tells a rank of the death of another where a network connects them (PeerLost, mostly
///   without its number); elsewhere it is found by the deadline (Timeout). Either ends what is in flight on this rank, and the world
///   stays aborted. NCCL tells the other ranks nothing of it.
/// - What differs between ranks is found by Checked<Nccl> only.
class Nccl : public BasicCommunicator<NcclCalls> {
 public:
  /// What a command line calls it: --comm nccl.
  static constexpr std::string_view name{"nccl"};
  using Options = nccl::Options;

  /// The ranks of a communicator that a host program has: pdp uses it, and never aborts or destroys it, so after a failure the program
  /// must. It stays alive until this and what came of it are gone, and makes no other calls while one is in flight. `caller`: the program's
  /// stream. Where it was made to block, so do pdp's calls that need the other ranks, whatever the deadline.
  Nccl(ncclComm* comm, nccl::Stream caller);
  Nccl(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Nccl split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store, and makes this rank's device the current one of the calling thread. Throws ConfigError where
  /// there are not enough GPUs or no driver, or NCCL refuses; Timeout, which names the missing ranks, when they are not there before the
  /// deadline; PeerLost where one goes away meanwhile; DeviceError where its GPU fails.
  static Nccl connect(StoreView store, int rank, int size, TimePoint deadline, Options options);
  static Nccl connect(StoreView store, int rank, int size, TimePoint deadline) { return connect(store, rank, size, deadline, {}); }
  /// Whether ranks may share a GPU: NCCL 2.30 and newer take that of a user who says NCCL_MULTI_RANK_GPU_ENABLE=1.
  [[nodiscard]] static bool shares_gpus();

  [[nodiscard]] int device() const { return erased().device(); }
  /// The stream whose work each call comes after.
  [[nodiscard]] nccl::Stream caller() const { return erased().caller(); }
  /// For all groups of this world.
  void caller(nccl::Stream stream) { erased().caller(stream); }
};

static_assert(Communicator<Nccl> && HasReduceScatter<Nccl> && RecordsCalls<Nccl> && QueuesMessages<Nccl> && !FailsFast<Nccl>);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_LAUNCH
#include <pdp/launch/start/source.hpp>
#endif
