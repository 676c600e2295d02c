#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/basic_communicator.hpp>

// The library's own: what cudaStream_t points to.
struct CUstream_st;

namespace pdp::comm {

namespace cuda_thread {
struct Call;
class Group;
using Stream = CUstream_st*;  // cudaStream_t
}  // namespace cuda_thread

/// One rank of a group of threads with a GPU each. Calls run on a stream of their group, after all that the callers' streams held when they
/// were made. Defined in pdp/comm/cuda_thread/source.hpp.
class CudaThreadCalls {
 public:
  static constexpr bool device_buffers = true;
  static constexpr bool rank_ordered = true;
  static constexpr bool fails_fast = true;

  /// A call in flight. Letting go of it before it is complete ends the world, as its memory would be written after its time.
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
    /// Until the GPUs of all ranks have carried out the call.
    void wait();
    /// Until all ranks have given the call to their streams; what the stream is given from then on comes after it. Nothing is pending then,
    /// and the memory is the stream's to order.
    void wait_on(cuda_thread::Stream stream);

   private:
    friend class CudaThreadCalls;
    explicit Work(cuda_thread::Call& call) : call_{&call} {}
    void abandon() noexcept;

    cuda_thread::Call* call_ = nullptr;
  };

  explicit CudaThreadCalls(std::shared_ptr<cuda_thread::Group> group);
  CudaThreadCalls(CudaThreadCalls&&) noexcept;
  CudaThreadCalls& operator=(CudaThreadCalls&&) noexcept;
  ~CudaThreadCalls();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] int device() const;
  [[nodiscard]] cuda_thread::Stream caller() const;
  void caller(cuda_thread::Stream stream);
  [[nodiscard]] Duration deadline() const;
  void deadline(Duration duration);
  /// Moves the calls of all groups as far as they can go without a wait. Throws what has ended the world.
  void progress();
  void abort(const std::string& reason);

  Work collective(Verb verb, Memory in, Memory out, int root, Reducer reducer = {});
  Work collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer = {});
  Work all_to_all(Memory in, Counts sent, Memory out, Counts received);
  Work exchange(Memory out, int to, Memory in, int from, int tag);
  void exchange_records(std::span<const std::byte> mine, std::span<std::byte> all);
  Region allocate(std::size_t bytes);
  [[nodiscard]] CudaThreadCalls split(int color, int key);

 private:
  std::shared_ptr<cuda_thread::Group> group_;
};
static_assert(AllocatesRegions<CudaThreadCalls> && DeviceCalls<CudaThreadCalls>);

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
