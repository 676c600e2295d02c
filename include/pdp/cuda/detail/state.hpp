#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <utility>

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
    begin_all();
    side_.unmark();
    return stream_;
  }
  /// The same for an operation that reads and writes this alone, which may run beside gradients of weights.
  [[nodiscard]] cudaStream_t stream(std::initializer_list<Bytes> reads, std::initializer_list<Bytes> writes) {
    begin_product();
    side_.join(stream_, reads, writes);
    side_.unmark();
    return stream_;
  }
  /// Begins the product that waits, if one does, and lets the stream wait for gradients of weights.
  void begin_all() {
    begin_product();
    side_.join(stream_);
  }
  [[nodiscard]] cudaStream_t stream_as_it_is() const { return stream_; }

  /// Forgets a product that waits, and those that the stream has not waited for.
  void forget() {
    waiting_.reset();
    side_.forget();
  }

  /// Adds a row to each of so many rows of a matrix, on a stream of a device.
  using AddRow = void(int device, cudaStream_t stream, const void* row, void* matrix, Index rows, Index cols);

  /// Takes a product down. It begins with the next operation, which may be one that cuBLASLt can do on its way.
  void take(const ProductForm& form, const void* left, const void* right, void* c) {
    begin_product();
    waiting_ = {form, left, right, c};
  }
  /// Adds a row to each row of what the waiting product gives, which begins, or waits on for relu(). Gives false, and does nothing, where
  /// it is no such product. `otherwise`: for a product that has waited in vain.
  template <class T>
  bool add_row(const T* row, Matrix<T> rows, AddRow* otherwise) {
    if (!gives(rows) || waiting_->form.epilogue != ProductForm::Epilogue::none) return false;
    if (!options_.fused_relu) return begin_with(ProductForm::Epilogue::add_bias, const_cast<T*>(row));  // read only
    waiting_->form.epilogue = ProductForm::Epilogue::add_bias;
    waiting_->bias = const_cast<T*>(row);
    waiting_->add_row = otherwise;
    return true;
  }
  /// Rectifies what the waiting product gives, in place; else as add_row().
  template <class T>
  bool relu(Matrix<const T> x, Matrix<T> y) {
    if (!options_.fused_relu || x.data != y.data || !gives(y)) return false;
    return begin_with(waiting_->bias != nullptr ? ProductForm::Epilogue::add_bias_relu : ProductForm::Epilogue::relu, waiting_->bias);
  }
  /// Sums up the columns of what the waiting product has as its right operand.
  template <class T>
  bool sum_rows(Matrix<const T> rows, Accumulated<T>* sums) {
    if (!options_.fused_bias_gradient || !waiting_ || waiting_->right != rows.data || waiting_->form.depth != rows.rows ||
        waiting_->form.cols != rows.cols || waiting_->form.right_is_transposed || waiting_->form.result != dtype_of<Accumulated<T>> ||
        waiting_->form.epilogue != ProductForm::Epilogue::none)
      return false;
    return begin_with(ProductForm::Epilogue::sum_right, sums);
  }

 private:
  struct Product {
    ProductForm form;
    const void *left, *right;
    void* c;
    void* bias = nullptr;  // that is to be added
    AddRow* add_row = nullptr;
  };

  template <class T>
  [[nodiscard]] bool gives(Matrix<T> rows) const {
    return waiting_ && waiting_->c == rows.data && waiting_->form.rows == rows.rows && waiting_->form.cols == rows.cols;
  }
  void begin_product() {
    if (!waiting_) return;
    Product product = *std::exchange(waiting_, std::nullopt);
    if (run(product)) return;
    const void* const row = std::exchange(product.bias, nullptr);
    product.form.epilogue = ProductForm::Epilogue::none;
    run(product);
    product.add_row(options_.index, stream_, row, product.c, product.form.rows, product.form.cols);
  }
  bool begin_with(ProductForm::Epilogue epilogue, void* bias) {
    Product product = *waiting_;
    product.form.epilogue = epilogue;
    product.bias = bias;
    if (!run(product)) return false;
    waiting_.reset();
    return true;
  }
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
      side_.add({left, right}, {c, bias});
      return true;
    }
    side_.join(stream_, {left, right, bias}, {c});
    if (form.right_is_transposed)
      side_.mark(stream_, product.left, c);
    else
      side_.unmark();
    return products_.run(form, product.left, product.right, product.c, product.bias, stream_, 0);
  }

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
  std::optional<Product> waiting_;
};

}  // namespace pdp::cuda
