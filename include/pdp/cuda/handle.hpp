#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <pdp/core/requirements.hpp>

// Declared by the CUDA runtime: the type that cudaStream_t points to.
struct CUstream_st;

namespace pdp::cuda {

using Stream = CUstream_st*;  // cudaStream_t

/// The options of a GPU device.
struct DeviceOptions {
  int index = 0;      // among the GPUs that this process may use
  bool tf32 = false;  // products of floats in TF32: faster, with 10 bits of precision in their operands
  /// A linear layer computes the Relu behind it in the same kernel. cuBLASLt does not specify the result of this Relu for NaN. If it is 0,
  /// parameters that are NaN may give finite gradients, and the check for NaN (plan::NonFinite) does not detect them.
  bool fused_relu = false;
  /// Gradients of weights are computed on a second stream. So they overlap with backward of the preceding layers.
  bool overlapped_weight_gradients = true;
  /// A step is recorded once for each number of rows and replayed as one CUDA graph. Over NCCL, steps are recorded only if all ranks set
  /// this option and the plan has no messages between two ranks. Over comm::CudaThread no step is recorded, as the host takes part in each
  /// call.
  bool graphs = true;
};

class State;

/// A GPU with a stream of its own, on which operations and copies run one after another.
///
/// Several Devices on one GPU have a stream each, so they may run concurrently. Copies of a Device share its stream. A Device and its
/// copies must not be used by two threads at once.
class Device {
 public:
  /// The device cannot read host memory.
  static constexpr bool uses_host_memory = false;

  /// Recorded lists of operations, by key; defined in graph.hpp.
  class Recordings;

  /// If the thread has used no GPU yet, makes this one its current GPU. Throws ConfigError if there is no driver, no GPU, none with that
  /// index, or if the GPU is too old. Throws DeviceError if another process uses the GPU exclusively, or if the GPU has too little free
  /// memory.
  explicit Device(const DeviceOptions& options = {});

  [[nodiscard]] int index() const;
  /// Returns whether steps are recorded as graphs.
  [[nodiscard]] bool records() const;
  /// Makes the device's stream wait for all gradients of weights in flight, and returns it.
  [[nodiscard]] Stream stream() const;
  /// Makes the stream wait for the gradients of weights that read or write these bytes. Call it before work that follows the stream but is
  /// not an operation of this device, such as a call of a communicator.
  void join(std::span<const std::byte> memory) const;
  /// Returns whether all work given to the device is complete. Throws DeviceError if some of it has failed.
  [[nodiscard]] bool is_idle() const;
  /// Waits until all work given to the device is complete. Throws DeviceError if some of it has failed.
  void synchronize() const;
  /// Returns text such as "NVIDIA H200, GPU 0, 140 GiB, CUDA 13.0".
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] State& state() const { return *state_; }
  [[nodiscard]] const std::shared_ptr<State>& shared_state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Returns the number of GPUs that this process may use. Throws ConfigError, which says what is missing, if there is none.
int devices();

inline std::string describe(const Device& device) { return device.describe(); }

}  // namespace pdp::cuda
