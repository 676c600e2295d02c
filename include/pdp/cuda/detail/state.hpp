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

/// Where the blocks of a kernel leave what each has added up, for the last of them; see kernels/sums.cuh.
struct Partials {
  static constexpr unsigned most_blocks = 1024;
  static constexpr unsigned numbers = 2;  // of a block

  double* values = nullptr;
  unsigned* arrived = nullptr;  // blocks; 0 between kernels
};

/// What all that use a device have in common: its stream, and the memory that its operations need. All of it is made at once, as nothing
/// may be allocated while operations are recorded.
class State {
 public:
  explicit State(const DeviceOptions& options) : options_{options} {
    const OnDevice on{options.index};
    constexpr std::size_t partials = Partials::most_blocks * Partials::numbers * sizeof(double), bytes = partials + sizeof(unsigned);
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
  /// The stream, for what comes after all that was called.
  [[nodiscard]] cudaStream_t stream() {
    side_.join(stream_);
    side_.unmark();
    return stream_;
  }
  /// The same for an operation that reads and writes this alone, which may run beside gradients of weights.
  [[nodiscard]] cudaStream_t stream(std::initializer_list<Bytes> reads, std::initializer_list<Bytes> writes) {
    side_.join(stream_, reads, writes);
    side_.unmark();
    return stream_;
  }
  /// Lets the stream wait for gradients of weights that read or write this.
  void join(Bytes memory) { side_.join(stream_, {}, {memory}); }
  [[nodiscard]] cudaStream_t stream_as_it_is() const { return stream_; }

  /// Forgets the products that the stream has not waited for.
  void forget() { side_.forget(); }

  /// A product to compute, and the bias that its epilogue adds, or null.
  struct Product {
    ProductForm form;
    const void *left, *right;
    void* c;
    const void* bias;
  };
  /// As Products::run(). The gradient of a weight, whose left operand is transposed, runs beside the gradient of the layer's input, and
  /// beside what comes after that, unless the options forbid it.
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
  SideStream side_{options_.index};  // goes before the products, whose memory it may still use
  Staging staging_{options_.index};
  Readings readings_{options_.index};
};

}  // namespace pdp::cuda
