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
#include <pdp/cpu/onednn/product.hpp>

namespace pdp::cpu::onednn {

/// All that a kernel is made for: c (+)= left right, where left lies as it is and right may lie transposed.
struct ProductForm {
  Index rows, cols, depth, left_stride, right_stride;
  bool is_transposed, accumulate;
  int threads;
  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
};

/// oneDNN's matmul primitive for one form, on operands as they lie.
class Kernel {
 public:
  /// Throws dnnl::error where oneDNN has none.
  Kernel(const dnnl::engine& engine, const ProductForm& form)
      : Kernel{engine, describe(engine, form, {form.left_stride, 1},
                                form.is_transposed ? Strides{1, form.right_stride} : Strides{form.right_stride, 1})} {}

  /// Whether it is one of those that oneDNN builds from blocks, and not its plain product in another guise.
  [[nodiscard]] bool has_blocks() const { return has_blocks_; }
  /// Bytes that it works in.
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }

  /// Takes as many threads as it was made for.
  dnnl_status_t run(const dnnl::stream& stream, const float* left, const float* right, float* c, std::byte* scratch) {
    left_.set_data_handle(const_cast<float*>(left));  // read only
    right_.set_data_handle(const_cast<float*>(right));
    c_.set_data_handle(c);
    scratch_.set_data_handle(scratch);
    const std::array<dnnl_exec_arg_t, 4> operands{
        {{DNNL_ARG_SRC, left_.get()}, {DNNL_ARG_WEIGHTS, right_.get()}, {DNNL_ARG_DST, c_.get()}, {DNNL_ARG_SCRATCHPAD, scratch_.get()}}};
    const dnnl_status_t status = dnnl_primitive_execute(kernel_.get(), stream.get(), as_int(operands.size()), operands.data());
    return status == dnnl_success ? dnnl_stream_wait(stream.get()) : status;  // with OpenMP it is complete by now, with SYCL not
  }

 private:
  using Description = dnnl::matmul::primitive_desc;
  using Strides = dnnl::memory::dims;

  Kernel(const dnnl::engine& engine, const Description& description)
      : kernel_{description},
        left_{description.src_desc(), engine, nullptr},
        right_{description.weights_desc(), engine, nullptr},
        c_{description.dst_desc(), engine, nullptr},
        scratch_{description.scratchpad_desc(), engine, nullptr},
        scratch_bytes_{description.scratchpad_desc().get_size()},
        has_blocks_{std::string_view{description.impl_info_str()}.starts_with("brg")} {}

  static Description describe(const dnnl::engine& engine, const ProductForm& form, const Strides& left_strides,
                              const Strides& right_strides) {
    const auto matrix = [](Index rows, Index cols, const Strides& strides) {
      return dnnl::memory::desc{{rows, cols}, dnnl::memory::data_type::f32, strides};
    };
    const auto left = matrix(form.rows, form.depth, left_strides), right = matrix(form.depth, form.cols, right_strides),
               c = matrix(form.rows, form.cols, {form.cols, 1});
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

/// The kernels of one thread, which are made when they are first asked for. Making one takes some 0.2 ms.
class Kernels {
 public:
  /// c (+)= left right; gives nothing, and leaves c as it is, where oneDNN's plain product is the better one. The calling thread has been
  /// given as many threads as the form says.
  std::optional<dnnl_status_t> run(const Operand& left, const Operand& right, Matrix<float> c, Index depth, bool accumulate, int threads) {
    // For gradients of weights it is mixed, and the plain product is faster where they are largest, and for a single row.
    constexpr Index least_rows = 16;
    if (left.is_transposed || c.rows < least_rows) return {};
    std::optional<Kernel>* const kernel =
        find({c.rows, c.cols, depth, left.stride, right.stride, right.is_transposed, accumulate, threads});
    if (kernel == nullptr || !*kernel) return {};
    return (*kernel)->run(stream_, left.data, right.data, c.data, scratch_.data());
  }

 private:
  /// Null where there are as many as there may be: rows of ever new numbers are not to fill the memory.
  std::optional<Kernel>* find(const ProductForm& form) {
    constexpr std::size_t most = 256;
    if (const auto found = kernels_.find(form); found != kernels_.end()) return &found->second;
    if (kernels_.size() == most) return nullptr;
    std::optional<Kernel> made;
    try {
      made.emplace(engine_, form);
    } catch (const dnnl::error&) {  // the plain product says what is wrong, if anything is
    }
    if (made && !made->has_blocks()) made.reset();
    if (made && as_index(made->scratch_bytes()) > scratch_.size())  // before it is kept: there may be no memory
      scratch_ = Buffer<std::byte>{as_index(made->scratch_bytes())};
    return &kernels_.emplace(form, std::move(made)).first->second;
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<ProductForm, std::optional<Kernel>> kernels_;  // nothing where oneDNN has none with blocks
  Buffer<std::byte> scratch_;
};

}  // namespace pdp::cpu::onednn
