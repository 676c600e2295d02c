// A stand-in for GPUs, the CUDA runtime and NCCL, for tests on machines without a GPU. It checks that pdp calls them as their manuals
// require. It shows nothing of their speed, nor of behaviour beyond the manuals.
//
// Ranks are threads, and device memory is memory of the process. A stream is a thread that executes its tasks in order. A collective waits
// for all ranks, and a message for its receiver, as large ones do on a GPU. So a program that would hang there hangs here.
// Averages are exact: the sum is divided. NCCL's averages of fractions are sums of quotients instead.
//
// It is strict. The process aborts with a message on a wrong argument, memory of another device, different calls of ranks, use of freed or
// unready objects, or an unfinished group call.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace stand_in {

/// The simulated machine and its faults. reset() restores the defaults for the next test.
struct Settings {
  std::atomic<int> devices{8};
  std::atomic<int> driver{13000};            // CUDA version; 0 if there is no driver
  std::atomic<int> nccl{NCCL_VERSION_CODE};  // from 2.30 on, ranks may share a GPU
  /// How many polls of a communicator's state it takes until NCCL has launched a call. NCCL may take some time, since it connects ranks in
  /// a thread of its own.
  std::atomic<int> looks_until_launched{0};
  /// Whether NCCL frees a communicator only when all of its ranks destroy it, as it does for processes of one host.
  std::atomic<bool> frees_together{false};
  std::atomic<bool> splits_hang{false};                 // whether a split completes only when it is aborted
  std::atomic<std::size_t> room{std::size_t{1} << 40};  // largest allocation on a device, in bytes
  std::atomic<std::size_t> host_room{std::size_t{1} << 40};
  std::atomic<bool> graphs_fit{true};             // whether there is memory for graphs
  std::atomic<cudaError_t> use{cudaSuccess};      // result of cudaSetDevice for devices other than 0
  std::atomic<cudaError_t> kernels{cudaSuccess};  // result of cudaFuncGetAttributes
  std::atomic<bool> reach{true};                  // whether devices can access each other's memory
  std::atomic<int> product_milliseconds{0};       // duration of a cuBLASLt product; other streams go on
  /// How many products must run at the same time. Each waits for the others, at most 10 s.
  std::atomic<int> products_to_meet{0};
  std::atomic<bool> epilogues{true};      // whether cuBLASLt finds algorithms with an epilogue
  std::atomic<bool> epilogues_run{true};  // whether a product with an epilogue then runs
  /// By device: whether NCCL has no memory left, whether it refuses to register memory, and the asynchronous error of its communicators.
  std::array<std::atomic<bool>, 8> full{}, refuses_registration{};
  std::array<std::atomic<ncclResult_t>, 8> error{};
};
Settings& settings();
void reset();

/// The number of objects that were made and not freed, such as communicators, streams, events, allocations and registrations.
int live();
/// Whether CUDA has initialised a device since the last reset(). On a real GPU that takes device memory.
bool is_in_use(int device);
/// Bytes of a device's memory that are in use.
std::size_t bytes(int device);

/// How many cuBLASLt products with this epilogue were enqueued or captured since the last reset().
int products(int epilogue);
/// Whether `products_to_meet` products ran at the same time since the last reset().
bool products_have_met();
/// How many graphs were launched since the last reset().
int graphs_launched();

/// Bytes of NCCL's collectives so far, counting the values or one shard. `registered` holds those in memory that all ranks have registered,
/// at the same offset on each rank. `other` holds all others.
struct Traffic {
  std::size_t registered = 0, other = 0;
};
Traffic traffic();

/// Blocks a stream during its lifetime.
class Hold {
 public:
  explicit Hold(cudaStream_t stream);
  Hold(Hold&&) = delete;
  ~Hold();

 private:
  std::atomic<bool>* held_;
};

}  // namespace stand_in
