#pragma once

/// The definitions for the headers of this folder, compiled once for a program by nvcc: one .cu file of the program includes this file.
/// CMake's target pdp::cuda adds that source.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <string>

#include <pdp/cuda/detail/devices.hpp>
#include <pdp/cuda/detail/state.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/cuda/kernels/attend.cuh>
#include <pdp/cuda/kernels/batch_normalise.cuh>
#include <pdp/cuda/kernels/convolve.cuh>
#include <pdp/cuda/kernels/elementwise.cuh>
#include <pdp/cuda/kernels/elementwise_loss.cuh>
#include <pdp/cuda/kernels/embed.cuh>
#include <pdp/cuda/kernels/loss.cuh>
#include <pdp/cuda/kernels/map.cuh>
#include <pdp/cuda/kernels/normalise.cuh>
#include <pdp/cuda/kernels/pool.cuh>
#include <pdp/cuda/kernels/products.cuh>
#include <pdp/cuda/kernels/reduce.cuh>
#include <pdp/cuda/kernels/softmax.cuh>
#include <pdp/cuda/kernels/sums.cuh>
#include <pdp/cuda/kernels/update.cuh>

namespace pdp::cuda {

namespace kernel {

/// A small value that is passed as a kernel argument.
struct Value {
  static constexpr std::size_t most = 128;
  unsigned char bytes[most];
};
__global__ void store(const __grid_constant__ Value value, unsigned size, unsigned char* to) {
  if (threadIdx.x < size) to[threadIdx.x] = value.bytes[threadIdx.x];
}

__global__ void scale_loss(StepNumbers* numbers, const StepHistory* history) { pdp::scale_loss(*numbers, *history); }
__global__ void apply_gradient_rule(StepNumbers* numbers, StepHistory* history, GradientRule rule) {
  pdp::apply_gradient_rule(*numbers, *history, rule);
}

}  // namespace kernel

// ---- The device ----------------------------------------------------------------------------------------------------

/// Throws ConfigError if the device does not exist or is too old for the kernels of this program, and DeviceError if it cannot be used.
inline void check_device(const DeviceOptions& options) {
  const std::string begin = text("cannot compute on GPU ", options.index);
  const int count = count_devices(begin, "compute on the CPU");
  if (options.index < 0 || options.index >= count)
    throw ConfigError{text(begin, ": this process may use ", count, count == 1 ? " GPU, number 0" : " GPUs, numbers 0 to ",
                           count == 1 ? std::string{} : text(count - 1))};
  cudaFuncAttributes attributes{};
  const OnDevice on{options.index};
  const cudaError_t result = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel::store));
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  const bool has_no_code =
      result == cudaErrorNoKernelImageForDevice || result == cudaErrorInvalidDeviceFunction || result == cudaErrorUnsupportedPtxVersion;
  if (!has_no_code) throw DeviceError{text(begin, ": ", cudaGetErrorString(result))};
  cudaDeviceProp properties{};
  check("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, options.index));
  throw ConfigError{
      text(begin, " (", properties.name, ", compute capability ", properties.major, ".", properties.minor,
           "): this program has no code for it; compile it for this GPU (CMAKE_CUDA_ARCHITECTURES=native) or use a newer GPU")};
}

int devices() { return count_devices("cannot compute on a GPU", "compute on the CPU"); }

Device::Device(const DeviceOptions& options) : state_{(check_device(options), std::make_shared<State>(options))} {}
int Device::index() const { return state_->options().index; }
bool Device::records() const { return state_->options().graphs; }
Stream Device::stream() const { return state_->stream(); }
void Device::join(std::span<const std::byte> memory) const { state_->join(memory); }
bool Device::is_idle() const {
  const OnDevice on{index()};
  return is_reached("cudaStreamQuery", cudaStreamQuery(state_->stream()));
}
void Device::synchronize() const {
  const OnDevice on{index()};
  check("cudaStreamSynchronize", cudaStreamSynchronize(state_->stream()));
}
std::string Device::describe() const {
  cudaDeviceProp properties{};
  check("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, index()));
  return text(properties.name, ", GPU ", index(), ", ", properties.totalGlobalMem >> 30, " GiB, CUDA ", version_text(CUDART_VERSION),
              state_->options().tf32 ? ", products in TF32" : "");
}

// ---- Memory --------------------------------------------------------------------------------------------------------

Block::Block(const Device& device, std::size_t bytes) : state_{device.shared_state()} {
  if (bytes == 0) return;
  const OnDevice on{device.index()};
  const cudaStream_t stream = state_->stream();
  void* memory = nullptr;
  check_room("cudaMallocFromPoolAsync", state_->pool().allocate(&memory, bytes, stream), device.index(), bytes);
  if (const cudaError_t result = cudaMemsetAsync(memory, 0, bytes, stream); result != cudaSuccess) {
    state_->pool().give_back(memory, bytes, stream);
    check("cudaMemsetAsync", result);
  }
  memory_ = memory;
  bytes_ = bytes;
}
Block::~Block() {
  if (memory_ == nullptr) return;
  const OnDevice on{state_->options().index, std::nothrow};
  try {
    state_->pool().give_back(memory_, bytes_, state_->stream());  // after gradients of weights in flight, which may write to it
  } catch (const Error&) {
    state_->forget();
    state_->pool().give_back(memory_, bytes_, state_->stream_as_it_is());
  }
}

void zero_bytes(const Device& device, void* memory, std::size_t bytes) {
  const OnDevice on{device.index()};
  if (bytes > 0) check("cudaMemsetAsync", cudaMemsetAsync(memory, 0, bytes, device.stream()));
}
void upload_bytes(const Device& device, const void* from, void* to, std::size_t bytes) {
  const OnDevice on{device.index()};
  device.state().staging().upload(from, to, bytes, device.stream());
}
void reserve_uploads(const Device& device, std::initializer_list<std::size_t> bytes) { device.state().staging().reserve(bytes); }
bool takes_at_once(const Device& device, std::initializer_list<std::size_t> bytes) {
  const OnDevice on{device.index()};
  return device.state().staging().takes_at_once(bytes);
}
void copy_bytes(const Device& device, const void* from, void* to, std::size_t bytes) {
  const OnDevice on{device.index()};
  if (bytes > 0 && from != to) check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device.stream()));
}
void download_bytes(const Device& device, const void* from, void* to, std::size_t bytes) {
  const OnDevice on{device.index()};
  device.state().staging().download(from, to, bytes, device.stream());
}
ReadBytes::ReadBytes(const Device& device, const void* value, std::size_t bytes) : state_{device.shared_state()} {
  const OnDevice on{device.index()};
  reading_ = &state_->readings().start(value, bytes, device.stream());
}
ReadBytes::~ReadBytes() {
  if (reading_ != nullptr) state_->readings().take_back(*reading_);
}
bool ReadBytes::is_there() const {
  const OnDevice on{state_->options().index};
  return is_reached("cudaEventQuery", cudaEventQuery(reading_->end));
}
const void* ReadBytes::get() const {
  const OnDevice on{state_->options().index};
  check("cudaEventSynchronize", cudaEventSynchronize(reading_->end));
  return reading_->memory;
}
void store_bytes(const Device& device, const void* value, std::size_t bytes, void* to) {
  kernel::Value sent{};
  std::memcpy(sent.bytes, value, bytes);
  launch(device, kernel::store, 1, static_cast<unsigned>(kernel::Value::most), sent, static_cast<unsigned>(bytes),
         static_cast<unsigned char*>(to));
}

template <Computed T>
void copy(const Device& device, Matrix<const T> from, Matrix<T> to) {
  const OnDevice on{device.index()};
  const std::size_t bytes = static_cast<std::size_t>(stored(from).size()) * sizeof(T);
  if (bytes > 0) check("cudaMemcpyAsync", cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice, device.stream()));
}

// ---- The rule for gradients ----------------------------------------------------------------------------------------

void scale_loss(const Device& device, StepNumbers* numbers, const StepHistory* history) {
  launch(device, kernel::scale_loss, 1, 1, numbers, history);
}
void apply_gradient_rule(const Device& device, StepNumbers* numbers, StepHistory* history, const GradientRule& rule) {
  launch(device, kernel::apply_gradient_rule, 1, 1, numbers, history, rule);
}

// ---- Graphs --------------------------------------------------------------------------------------------------------

Graph::~Graph() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}
void Graph::launch(const Device& device) const {
  const OnDevice on{device.index()};
  check("cudaGraphLaunch", cudaGraphLaunch(graph_, device.stream()));
}

Recording::Recording(const Device& device) : device_{device} {
  const OnDevice on{device.index()};
  check("cudaStreamBeginCapture", cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeThreadLocal));
}
Graph Recording::finish() {
  const OnDevice on{device_.index()};
  const cudaStream_t stream = device_.stream();  // joined with the gradients of weights
  finished_ = true;
  cudaGraph_t written = nullptr;
  check("cudaStreamEndCapture", cudaStreamEndCapture(stream, &written));
  Graph graph;
  const cudaError_t result = cudaGraphInstantiate(&graph.graph_, written, 0);
  cudaGraphDestroy(written);
  check("cudaGraphInstantiate", result);
  return graph;
}
Recording::~Recording() {
  if (finished_) return;
  const OnDevice on{device_.index(), std::nothrow};
  device_.state().forget();
  cudaGraph_t written = nullptr;
  if (cudaStreamEndCapture(device_.state().stream_as_it_is(), &written) == cudaSuccess) cudaGraphDestroy(written);
}

}  // namespace pdp::cuda

/// Instantiates the operations for each element type that a model may compute in.
namespace pdp::cuda {

#define PDP_INSTANTIATE(T)                                                                                                                 \
  template void gemm(const Device&, Matrix<const T>, Matrix<const T>, Matrix<T>, bool);                                                    \
  template void gemm_nt(const Device&, Matrix<const T>, Matrix<const T>, Matrix<T>, bool);                                                 \
  template void gemm_tn(const Device&, Matrix<const T>, Matrix<const T>, Matrix<float>, bool);                                             \
  template void affine(const Device&, Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Activation);                                  \
  template void add_row(const Device&, const T*, Matrix<T>);                                                                               \
  template void sum_rows(const Device&, Matrix<const T>, float*, bool);                                                                    \
  template void relu(const Device&, Matrix<const T>, Matrix<T>);                                                                           \
  template void relu_backward(const Device&, Matrix<const T>, Matrix<const T>, Matrix<T>);                                                 \
  template void hyperbolic_tangent(const Device&, Matrix<const T>, Matrix<T>);                                                             \
  template void hyperbolic_tangent_backward(const Device&, Matrix<const T>, Matrix<const T>, Matrix<T>);                                   \
  template void drop(const Device&, const Pass&, float, Matrix<const T>, Matrix<T>);                                                       \
  template void attend(const Device&, const Attention&, Matrix<const T>, Matrix<T>, T*);                                                   \
  template void attend_backward(const Device&, const Attention&, Matrix<const T>, Matrix<const T>, Matrix<const T>, const T*, Matrix<T>);  \
  template void rotate(const Device&, const Attention&, const Rotation&, Matrix<T>);                                                       \
  template void batch_statistics(const Device&, const BatchNormalisation&, Matrix<const T>, const T*, double*);                            \
  template void batch_normalise(const Device&, const BatchNormalisation&, Matrix<const T>, const T*, const double*, const T*, const T*,    \
                                Matrix<T>);                                                                                                \
  template void normalise_channels(const Device&, const BatchNormalisation&, Matrix<const T>, const T*, const T*, const T*, const T*,      \
                                   Matrix<T>);                                                                                             \
  template void batch_gradient_sums(const Device&, const BatchNormalisation&, Matrix<const T>, const T*, Matrix<const T>, double*);        \
  template void batch_normalise_backward(const Device&, const BatchNormalisation&, Matrix<const T>, const T*, const double*, const T*,     \
                                         Matrix<const T>, Matrix<T>);                                                                      \
  template void batch_parameter_gradients(const Device&, const BatchNormalisation&, Index, double, const StepNumbers*, const T*, const T*, \
                                          const double*, Index, float*, bool);                                                             \
  template void embed(const Device&, Matrix<const std::int32_t>, const TokenRows&, Matrix<const T>, Matrix<T>);                            \
  template void embed_backward(const Device&, Matrix<const std::int32_t>, const TokenRows&, Matrix<const T>, Matrix<float>, bool);         \
  template void normalise(const Device&, const GroupNormalisation&, Matrix<const T>, const T*, const T*, Matrix<T>);                       \
  template void normalise_backward_input(const Device&, const GroupNormalisation&, Matrix<const T>, const T*, Matrix<const T>, Matrix<T>); \
  template void normalise_backward_weight(const Device&, const GroupNormalisation&, Matrix<const T>, Matrix<const T>, float*, float*,      \
                                          bool);                                                                                           \
  template void convolve(const Device&, const Convolution&, Matrix<const T>, const T*, const T*, Matrix<T>);                               \
  template void convolve_backward_input(const Device&, const Convolution&, const T*, Matrix<const T>, Matrix<T>);                          \
  template void convolve_backward_weight(const Device&, const Convolution&, Matrix<const T>, Matrix<const T>, float*, float*, bool);       \
  template void max_pool(const Device&, const Pooling&, Matrix<const T>, Matrix<T>);                                                       \
  template void max_pool_backward(const Device&, const Pooling&, Matrix<const T>, Matrix<const T>, Matrix<const T>, Matrix<T>);            \
  template void average_pool(const Device&, const Pooling&, Matrix<const T>, Matrix<T>);                                                   \
  template void average_pool(const Device&, const AdaptivePooling&, Matrix<const T>, Matrix<T>);                                           \
  template void average_pool_backward(const Device&, const Pooling&, Matrix<const T>, Matrix<T>);                                          \
  template void average_pool_backward(const Device&, const AdaptivePooling&, Matrix<const T>, Matrix<T>);                                  \
  template void softmax(const Device&, Matrix<const T>, Matrix<T>);                                                                        \
  template void softmax_backward(const Device&, Matrix<const T>, Matrix<const T>, Matrix<T>);                                              \
  template void add(const Device&, Matrix<const T>, Matrix<const T>, Matrix<T>);                                                           \
  template void copy(const Device&, Matrix<const T>, Matrix<T>);                                                                           \
  template void copy_columns(const Device&, Matrix<const T>, Index, Matrix<T>, Index, Index);                                              \
  template void softmax_cross_entropy(const Device&, Matrix<const T>, std::span<const std::int32_t>, const double*, Matrix<T>, LossSums*,  \
                                      Index, double, const ClassWeights&);                                                                 \
  template void softmax_part(const Device&, Matrix<const T>, std::span<const std::int32_t>, Index, Index, Matrix<float>, Index, double,    \
                             const ClassWeights&);                                                                                         \
  template void softmax_cross_entropy_of_parts(const Device&, Matrix<const T>, std::span<const std::int32_t>, Index, Matrix<const float>,  \
                                               const double*, Matrix<T>, LossSums*, Index, double, Index, const ClassWeights&);            \
  template void squared_error(const Device&, Matrix<const T>, Matrix<const float>, const double*, Matrix<T>, LossSums*, bool);             \
  template void fill_uniform(const Device&, random::Key, double, const random::Elements&, T*, Index)
PDP_INSTANTIATE(float);
PDP_INSTANTIATE(BFloat16);
PDP_INSTANTIATE(Float16);
#undef PDP_INSTANTIATE

template void convert(const Device&, Matrix<const float>, Matrix<BFloat16>);
template void convert(const Device&, Matrix<const BFloat16>, Matrix<float>);
template void convert(const Device&, Matrix<const float>, Matrix<Float16>);
template void convert(const Device&, Matrix<const Float16>, Matrix<float>);

}  // namespace pdp::cuda
