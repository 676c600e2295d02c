#pragma once

#include <cstddef>
#include <initializer_list>

#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cuda/detail/library.hpp>
#include <pdp/cuda/detail/pool.hpp>
#include <pdp/cuda/detail/products.hpp>
#include <pdp/cuda/detail/readings.hpp>
#include <pdp/cuda/detail/side_stream.hpp>
#include <pdp/cuda/detail/staging.hpp>
#include <pdp/cuda/handle.hpp>

namespace pdp::cuda {

/// Memory for the partial sums of a kernel's blocks. The last block to finish adds them up (see kernels/rows.cuh), or another kernel (see
/// kernels/normalise.cuh).
struct Partials {
  static constexpr unsigned most_blocks = 1024;
  static constexpr unsigned numbers = 2;                      // partial sums of a block
  static constexpr std::size_t bytes = std::size_t{1} << 20;  // of `values`; those of two sums of each block fit into them

  double* values = nullptr;
  unsigned* arrived = nullptr;  // number of blocks that have arrived; 0 between kernels
};

/// The state that all users of a device share: its stream, and the memory that its operations need. The memory is made before operations
/// are recorded, since nothing may be allocated during a recording.
class State {
 public:
  explicit State(const DeviceOptions& options) : options_{options} {
    const OnDevice on{options.index};
    static_assert(Partials::most_blocks * Partials::numbers * sizeof(double) <= Partials::bytes);
    constexpr std::size_t partials = Partials::bytes, bytes = partials + sizeof(unsigned);
    try {
      check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
      void* memory = nullptr;
      check_room("cudaMalloc", cudaMalloc(&memory, bytes), options.index, bytes);
      partials_ = {static_cast<double*>(memory), reinterpret_cast<unsigned*>(static_cast<std::byte*>(memory) + partials)};
      check("cudaMemsetAsync", cudaMemsetAsync(memory, 0, bytes, stream_));
    } catch (...) {
      release();
      throw;
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { release(); }

  [[nodiscard]] const DeviceOptions& options() const { return options_; }
  [[nodiscard]] const Partials& partials() const { return partials_; }
  [[nodiscard]] Staging& staging() { return staging_; }
  [[nodiscard]] Readings& readings() { return readings_; }
  [[nodiscard]] Pool& pool() { return pool_; }
  /// Returns the stream, joined with all products on the side stream: for an operation that may read or write any memory.
  [[nodiscard]] cudaStream_t stream() {
    side_.join(stream_);
    side_.unmark();
    return stream_;
  }
  /// Returns the stream for an operation that reads and writes only these bytes, and so may overlap with gradients of weights.
  [[nodiscard]] cudaStream_t stream(std::initializer_list<Bytes> reads, std::initializer_list<Bytes> writes) {
    side_.join(stream_, reads, writes);
    side_.unmark();
    return stream_;
  }
  /// Makes the stream wait for gradients of weights that read or write this memory.
  void join(Bytes memory) { side_.join(stream_, {}, {memory}); }
  /// Returns the stream without joining it with the side stream.
  [[nodiscard]] cudaStream_t stream_as_it_is() const { return stream_; }

  /// Forgets the products on the side stream that the stream has not waited for.
  void forget() { side_.forget(); }

  /// A product to compute. `bias` is the bias that its epilogue adds, or null.
  struct Product {
    ProductForm form;
    const void *left, *right;
    void* c;
    const void* bias;
  };
  /// Does the same as Products::run(). A product with a transposed left operand is the gradient of a weight. It runs on the side stream, so
  /// it overlaps with the gradient of the layer's input and with later work, unless the options forbid that.
  bool run(const Product& product) {
    const ProductForm& form = product.form;
    const auto bytes = [](const void* data, Index elements, DType type) {
      return Bytes{static_cast<const std::byte*>(data), as_size(elements) * (type == DType::float32 ? sizeof(float) : sizeof(BFloat16))};
    };
    const Bytes left = bytes(product.left, form.rows * form.depth, form.type),
                right = bytes(product.right, form.depth * form.cols, form.type), c = bytes(product.c, form.rows * form.cols, form.result);
    const Bytes bias = product.bias != nullptr ? bytes(product.bias, form.cols, form.result) : Bytes{};
    const OnDevice on{options_.index};
    if (options_.overlapped_weight_gradients && form.left_is_transposed) {
      side_.follow(stream_, left, right);
      if (!products_.run(form, product.left, product.right, product.c, product.bias, side_.stream(), 1)) return false;
      side_.add({left, right}, {c});
      return true;
    }
    side_.join(stream_, {left, right, bias}, {c});
    if (form.right_is_transposed)
      side_.mark(stream_, product.left, c);
    else
      side_.unmark();
    return products_.run(form, product.left, product.right, product.c, product.bias, stream_, 0);
  }

 private:
  void release() noexcept {
    const OnDevice on{options_.index, std::nothrow};
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
    if (partials_.values != nullptr) cudaFree(partials_.values);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  DeviceOptions options_;
  cudaStream_t stream_ = nullptr;
  Partials partials_;
  Pool pool_{options_.index};
  Products products_{options_.index, options_.tf32};
  SideStream side_{options_.index};  // destroyed before products_, as it may still use their workspace
  Staging staging_{options_.index};
  Readings readings_{options_.index};
};

}  // namespace pdp::cuda
