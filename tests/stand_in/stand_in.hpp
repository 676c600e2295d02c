// What stands in for GPUs, the CUDA runtime and NCCL in the tests of comm::Nccl, where there are none: it shows that pdp calls them as
// their manuals say, and says nothing of their speed, nor of what they do beyond the manuals.
//
// Ranks are threads, and the memory of a device is memory of the process. A stream is a thread that carries out one thing after another. A
// collective waits for all ranks and a message for its receiver, as large ones do on a GPU: a program that would hang there hangs here.
// Reductions are exact: an average is a sum that is divided, which NCCL's of fractions is not.
//
// It is strict. A wrong argument, memory that is not of the device, calls of ranks that differ, a use of what was given back or is not
// ready, an unfinished group call: the process ends at once and says why.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace stand_in {

/// What there is, and what goes wrong. For the next test, all is as it was: reset().
struct Settings {
  std::atomic<int> devices{8};
  std::atomic<int> driver{13000};            // 0: there is none
  std::atomic<int> nccl{NCCL_VERSION_CODE};  // from 2.30 on, ranks may share a GPU
  /// Looks at the state of a communicator until NCCL has put a call on its stream: it connects ranks in a thread of its own.
  std::atomic<int> looks_until_launched{0};
  /// Whether NCCL frees a communicator only when all of its ranks give it back, as it does where they are processes of one host.
  std::atomic<bool> frees_together{false};
  std::atomic<bool> splits_hang{false};                 // whether a split makes its communicators only when it is aborted
  std::atomic<std::size_t> room{std::size_t{1} << 40};  // bytes of a device, for a piece of memory
  std::atomic<std::size_t> host_room{std::size_t{1} << 40};
  std::atomic<bool> graphs_fit{true};             // whether there is room for graphs
  std::atomic<cudaError_t> use{cudaSuccess};      // what is said to who wants another device than the first
  std::atomic<cudaError_t> kernels{cudaSuccess};  // what is said of the program's kernels
  std::atomic<bool> reach{true};                  // whether devices reach each other's memory
  std::atomic<int> product_milliseconds{0};       // that a product of cuBLASLt takes, while other streams go on
  /// How many products are to be at work at the same time: each waits until they have been, for 10 s at most.
  std::atomic<int> products_to_meet{0};
  std::atomic<bool> epilogues{true};      // whether cuBLASLt can do more than a product
  std::atomic<bool> epilogues_run{true};  // where it finds an algorithm for that, whether it carries it out
  /// By device: whether NCCL has no memory there, registers none, and what it says of the communicators at any time.
  std::array<std::atomic<bool>, 8> full{}, refuses_registration{};
  std::array<std::atomic<ncclResult_t>, 8> error{};
};
Settings& settings();
void reset();

/// What was made and not given back: communicators, streams, events, pieces of memory, registrations.
int live();
/// Whether CUDA has begun to use a device since the last reset(), which takes memory of it.
bool is_in_use(int device);
/// Bytes of a device's memory that are in use.
std::size_t bytes(int device);

/// How often a product with this epilogue of cuBLASLt was begun, or recorded, since the last reset().
int products(int epilogue);
/// Whether as many products as are to were at work at the same time since the last reset().
bool products_have_met();
/// How many graphs were launched since the last reset().
int graphs_launched();

/// Bytes of the values, or of a rank's shard, of NCCL's collectives so far: of those whose memory all ranks have registered, and in which
/// it lies in the same place on each, and of all others.
struct Traffic {
  std::size_t registered = 0, other = 0;
};
Traffic traffic();

/// Keeps a stream from going on, for as long as it lives.
class Hold {
 public:
  explicit Hold(cudaStream_t stream);
  Hold(Hold&&) = delete;
  ~Hold();

 private:
  std::atomic<bool>* held_;
};

}  // namespace stand_in
