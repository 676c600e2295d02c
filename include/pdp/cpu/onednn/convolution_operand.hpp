#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::cpu::onednn {

/// Runs a primitive. Throws Error if it fails. The call of oneDNN's C++ interface would allocate memory.
inline void execute(const dnnl::primitive& primitive, const dnnl::stream& stream, std::span<const dnnl_exec_arg_t> operands) {
  dnnl_status_t status = dnnl_primitive_execute(primitive.get(), stream.get(), as_int(operands.size()), operands.data());
  if (status == dnnl_success) status = dnnl_stream_wait(stream.get());
  if (status != dnnl_success)
    throw Error{text("oneDNN failed to compute a convolution (dnnl_status_t ", as_int(status),
                     "); to use pdp's own instead, do not link pdp::onednn")};
}

/// A tensor of a convolution. Outside it is in the order of PyTorch. If the kernel wants another order, a copy in scratch memory has it.
class ConvolutionOperand {
 public:
  /// `scratch_bytes`: of the operands before; the bytes of this one are added.
  ConvolutionOperand(const dnnl::engine& engine, int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted,
                     bool is_result, std::size_t& scratch_bytes)
      : argument_{argument}, offset_{scratch_bytes}, plain_{plain, engine, nullptr} {
    if (plain == wanted) return;
    copy_.emplace(wanted, engine, nullptr);
    conversion_ = is_result ? dnnl::reorder{*copy_, plain_} : dnnl::reorder{plain_, *copy_};
    constexpr std::size_t step = 64;
    scratch_bytes += (wanted.get_size() + step - 1) / step * step;
  }

  /// Sets the memory outside. Converts it if it is an input.
  void read(const dnnl::stream& stream, const float* values, std::byte* scratch) {
    bind(const_cast<float*>(values), scratch);  // only read
    if (copy_) convert(stream, plain_, *copy_);
  }
  void bind(float* values, std::byte* scratch) {
    plain_.set_data_handle(values);
    if (copy_) copy_->set_data_handle(scratch + offset_);
  }
  /// Converts a result to the memory outside.
  void write(const dnnl::stream& stream) {
    if (copy_) convert(stream, *copy_, plain_);
  }
  [[nodiscard]] dnnl_exec_arg_t operand() const { return {argument_, copy_ ? copy_->get() : plain_.get()}; }

 private:
  void convert(const dnnl::stream& stream, const dnnl::memory& from, const dnnl::memory& to) {
    const std::array<dnnl_exec_arg_t, 2> operands{{{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}}};
    execute(conversion_, stream, operands);
  }

  int argument_;
  std::size_t offset_;
  dnnl::memory plain_;
  std::optional<dnnl::memory> copy_;
  dnnl::reorder conversion_;
};

}  // namespace pdp::cpu::onednn
