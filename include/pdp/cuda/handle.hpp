#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

// The library's own: what cudaStream_t points to.
struct CUstream_st;

namespace pdp::cuda {

using Stream = CUstream_st*;  // cudaStream_t

/// What a program may want of a GPU otherwise than it is without a word.
struct DeviceOptions {
  int index = 0;      // of those that this process may use
  bool tf32 = false;  // products of floats in TF32: faster, with 10 bits of precision in their operands
  /// A linear layer computes the Relu behind it in the same kernel. cuBLASLt does not say what becomes of NaN there; if that is 0,
  /// parameters that are NaN may give gradients that are not, and NonFinite does not see them.
  bool fused_relu = false;
  /// Gradients of weights are computed on a second stream, beside the gradients of the layers before.
  bool overlapped_weight_gradients = true;
  /// A step is recorded once for each number of rows, and replayed as one CUDA graph; over NCCL, where all ranks do, and no messages
  /// travel. Over comm::CudaThread, whose calls the host takes a part in, none is.
  bool graphs = true;
};

class State;

/// A GPU, and a stream of its own, on which operations are carried out one after another. Copies are of the same stream.
///
/// Of several on one GPU, each has a stream, and so they may run side by side. Not for two threads at once.
class Device {
 public:
  /// The device cannot read what the host has.
  static constexpr bool uses_host_memory = false;

  /// Lists of operations that were recorded, by what they depend on; see replay().
  class Recordings;

  /// On a thread that has used no GPU yet, this one becomes its current one. Throws ConfigError where there is no driver, no GPU, none of
  /// that index, or one that is too old; DeviceError where another process has it for itself, or it has no room.
  explicit Device(const DeviceOptions& options = {});

  [[nodiscard]] int index() const;
  /// Whether steps are recorded as graphs.
  [[nodiscard]] bool records() const;
  [[nodiscard]] Stream stream() const;
  /// Lets the stream wait for the gradients of weights that read or write these bytes; for what comes after the stream without asking for
  /// it, as the calls of a communicator do.
  void join(std::span<const std::byte> memory) const;
  /// Whether all that was called is carried out. Throws DeviceError where something has failed.
  [[nodiscard]] bool is_idle() const;
  /// Waits until all that was called is carried out. Throws DeviceError where something has failed.
  void synchronize() const;
  /// "NVIDIA H200, GPU 0, 140 GiB, CUDA 13.0".
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] State& state() const { return *state_; }
  [[nodiscard]] const std::shared_ptr<State>& shared_state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// How many GPUs this process may use. Throws ConfigError, which says what is missing, where there is none.
int devices();

inline std::string describe(const Device& device) { return device.describe(); }

}  // namespace pdp::cuda
