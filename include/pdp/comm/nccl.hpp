#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/separate_compilation.hpp>

// The libraries' own: what ncclComm_t and cudaStream_t point to.
struct ncclComm;
struct CUstream_st;

namespace pdp::comm {

namespace nccl {
struct Call;
class Group;
using Stream = CUstream_st*;  // cudaStream_t

/// What a rank may want otherwise than it is without a word.
struct Options {
  std::optional<int> device{};      // that it uses; else as local_rank says
  std::optional<int> local_rank{};  // on its host: it uses the device of this number, in turn; else the first that no rank has
  Stream caller = nullptr;          // the stream whose work calls come after; null: the default stream
};
}  // namespace nccl

/// One rank of a group that NCCL connects. Calls run on a stream of their group, after all that the caller's stream held when they were
/// made. Defined in pdp/comm/nccl/source.hpp.
class NcclCalls {
 public:
  static constexpr bool device_buffers = true;
  static constexpr bool records_calls = true;
  static constexpr bool queues_messages = true;

  /// A call in flight on the device. Letting go of it before it is complete ends the world, as its memory would be written after its time.
  class [[nodiscard]] Work {
   public:
    Work() = default;
    Work(Work&& other) noexcept : call_{std::exchange(other.call_, nullptr)} {}
    Work& operator=(Work&& other) noexcept {
      if (this != &other) {
        if (pending()) abandon();
        call_ = std::exchange(other.call_, nullptr);
      }
      return *this;
    }
    ~Work() {
      if (pending()) abandon();
    }

    [[nodiscard]] bool pending() const { return call_ != nullptr; }
    [[nodiscard]] bool done();
    /// Until the device has carried out the call.
    void wait();
    /// Lets the stream wait in place of this thread: what it is given from now on comes after the call. Nothing is pending then, and what
    /// goes wrong later is thrown by a later call of the world. The memory is the stream's to order.
    void wait_on(nccl::Stream stream);

   private:
    friend class NcclCalls;
    explicit Work(nccl::Call& call) : call_{&call} {}
    void abandon() noexcept;

    nccl::Call* call_ = nullptr;
  };

  explicit NcclCalls(std::shared_ptr<nccl::Group> group);
  NcclCalls(NcclCalls&&) noexcept;
  NcclCalls& operator=(NcclCalls&&) noexcept;
  ~NcclCalls();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] int device() const;
  [[nodiscard]] nccl::Stream caller() const;
  void caller(nccl::Stream stream);
  [[nodiscard]] Duration deadline() const;
  void deadline(Duration duration);
  /// Throws what has ended the world, NCCL's word of what is in flight included. The device needs no help.
  void progress();
  void abort(const std::string& reason);

  Work collective(Verb verb, Memory in, Memory out, int root, Reducer reducer = {});
  Work collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer = {});
  Work all_to_all(Memory in, Counts sent, Memory out, Counts received);
  Work exchange(Memory out, int to, Memory in, int from, int tag);
  void exchange_records(std::span<const std::byte> mine, std::span<std::byte> all);
  void begin_group();
  void end_group();
  Region allocate(std::size_t bytes);
  [[nodiscard]] NcclCalls split(int color, int key);

 private:
  std::shared_ptr<nccl::Group> group_;
};
static_assert(AllocatesRegions<NcclCalls> && GroupsCalls<NcclCalls> && DeviceCalls<NcclCalls>);

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
