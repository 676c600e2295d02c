#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/cpu/onednn/product.hpp>

namespace pdp::cpu::onednn {

/// The key of a kernel: c (+)= left right.
struct ProductForm {
  Index rows, cols, depth, left_stride, right_stride;
  bool is_left_transposed, is_right_transposed, accumulate;
  DType operands, result;
  int threads;
  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
};

/// oneDNN's matmul primitive for one form. Reads its operands in place.
class Kernel {
 public:
  /// Throws dnnl::error if oneDNN has no such primitive for the form.
  Kernel(const dnnl::engine& engine, const ProductForm& form) : Kernel{engine, describe(engine, form)} {}

  /// Returns whether this is one of oneDNN's blocked kernels. The others are its plain product, and code that is not optimised.
  [[nodiscard]] bool has_blocks() const { return has_blocks_; }
  /// Returns the bytes of scratch memory that run() needs.
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }

  /// Runs on as many threads as the kernel was made for.
  dnnl_status_t run(const dnnl::stream& stream, const void* left, const void* right, void* c, std::byte* scratch) {
    left_.set_data_handle(const_cast<void*>(left));  // only read
    right_.set_data_handle(const_cast<void*>(right));
    c_.set_data_handle(c);
    scratch_.set_data_handle(scratch);
    const std::array<dnnl_exec_arg_t, 4> operands{
        {{DNNL_ARG_SRC, left_.get()}, {DNNL_ARG_WEIGHTS, right_.get()}, {DNNL_ARG_DST, c_.get()}, {DNNL_ARG_SCRATCHPAD, scratch_.get()}}};
    const dnnl_status_t status = dnnl_primitive_execute(kernel_.get(), stream.get(), as_int(operands.size()), operands.data());
    return status == dnnl_success ? dnnl_stream_wait(stream.get()) : status;  // complete by now with OpenMP, but not with SYCL
  }

 private:
  using Description = dnnl::matmul::primitive_desc;

  Kernel(const dnnl::engine& engine, const Description& description)
      : kernel_{description},
        left_{description.src_desc(), engine, nullptr},
        right_{description.weights_desc(), engine, nullptr},
        c_{description.dst_desc(), engine, nullptr},
        scratch_{description.scratchpad_desc(), engine, nullptr},
        scratch_bytes_{description.scratchpad_desc().get_size()},
        has_blocks_{std::string_view{description.impl_info_str()}.starts_with("brg")} {}

  static Description describe(const dnnl::engine& engine, const ProductForm& form) {
    const auto matrix = [](Index rows, Index cols, Index stride, bool is_transposed, DType type) {
      const auto numbers = type == DType::bfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
      return dnnl::memory::desc{{rows, cols}, numbers, is_transposed ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1}};
    };
    const auto left = matrix(form.rows, form.depth, form.left_stride, form.is_left_transposed, form.operands);
    const auto right = matrix(form.depth, form.cols, form.right_stride, form.is_right_transposed, form.operands);
    const auto c = matrix(form.rows, form.cols, form.cols, false, form.result);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (form.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum();
      attributes.set_post_ops(sum);
    }
#if DNNL_VERSION_MAJOR >= 3
    return {engine, left, right, c, attributes};
#else
    return {{left, right, c}, attributes, engine};
#endif
  }

  dnnl::matmul kernel_;
  dnnl::memory left_, right_, c_, scratch_;
  std::size_t scratch_bytes_;
  bool has_blocks_;
};

/// The kernels of one thread, made at first use. Making one takes some 0.2 ms.
class Kernels {
 public:
  /// Computes c (+)= left right. Returns nothing, and leaves c as it is, if oneDNN's plain product (dnnl_sgemm) is the better choice.
  /// OpenMP must give the calling thread `threads` threads.
  std::optional<dnnl_status_t> run(const Operand& left, const Operand& right, Matrix<float> c, Index depth, bool accumulate, int threads) {
    // The plain product is faster for the largest gradients of weights (left is transposed) and for a single row. So it computes all
    // gradients of weights, and all products of few rows.
    constexpr Index least_rows = 16;
    if (left.is_transposed || c.rows < least_rows) return {};
    return run_kernel(left, right, c, depth, accumulate, threads);
  }
  /// Does the same for 16-bit numbers. Returns nothing if oneDNN has no blocked kernel.
  template <class Out>
  std::optional<dnnl_status_t> run(const OperandOf<BFloat16>& left, const OperandOf<BFloat16>& right, Matrix<Out> c, Index depth,
                                   bool accumulate, int threads) {
    return run_kernel(left, right, c, depth, accumulate, threads);
  }

 private:
  template <class In, class Out>
  std::optional<dnnl_status_t> run_kernel(const OperandOf<In>& left, const OperandOf<In>& right, Matrix<Out> c, Index depth,
                                          bool accumulate, int threads) {
    std::optional<Kernel>* const kernel = find({c.rows, c.cols, depth, left.stride, right.stride, left.is_transposed, right.is_transposed,
                                                accumulate, dtype_of<In>, dtype_of<Out>, threads});
    if (kernel == nullptr || !*kernel) return {};
    return (*kernel)->run(stream_, left.data, right.data, c.data, scratch_.data());
  }
  /// Returns null if there are too many kernels already. So batches with ever new numbers of rows do not fill the memory.
  std::optional<Kernel>* find(const ProductForm& form) {
    constexpr std::size_t most = 256;
    if (const auto found = kernels_.find(form); found != kernels_.end()) return &found->second;
    if (kernels_.size() == most) return nullptr;
    std::optional<Kernel> made;
    try {
      made.emplace(engine_, form);
    } catch (const dnnl::error&) {  // the plain product reports the error, if there is one
    }
    if (made && !made->has_blocks()) made.reset();
    if (made && as_index(made->scratch_bytes()) > scratch_.size())  // before the kernel is stored, as this may throw
      scratch_ = Buffer<std::byte>{as_index(made->scratch_bytes())};
    return &kernels_.emplace(form, std::move(made)).first->second;
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<ProductForm, std::optional<Kernel>> kernels_;  // an optional is empty if oneDNN has no blocked kernel
  Buffer<std::byte> scratch_;
};

}  // namespace pdp::cpu::onednn
