#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/convolution.hpp>
#include <pdp/cpu/onednn/convolution_operand.hpp>

namespace pdp::cpu::onednn {

/// The key of a kernel: which result of which convolution.
struct ConvolutionForm {
  enum class Result { y, gradient_x, gradient_weight };

  Result result;
  Convolution how;
  Index rows;
  bool has_bias;
  int threads;
  friend auto operator<=>(const ConvolutionForm&, const ConvolutionForm&) = default;
};

/// oneDNN's primitive for one form.
class ConvolutionKernel {
 public:
  /// Throws dnnl::error if oneDNN has no primitive for the form.
  ConvolutionKernel(const dnnl::engine& engine, const ConvolutionForm& form) {
    using dnnl::memory;
    using Order = memory::format_tag;
    const Convolution& how = form.how;
    const auto desc = [](const memory::dims& sizes, Order order) { return memory::desc{sizes, memory::data_type::f32, order}; };
    const memory::dims x_sizes{form.rows, how.channels, how.vertical.extent, how.horizontal.extent};
    const memory::dims y_sizes{form.rows, how.filters, how.vertical.count(), how.horizontal.count()};
    const memory::dims kernel{how.vertical.size, how.horizontal.size};
    const bool has_groups = how.groups > 1;
    const memory::dims weight_sizes = has_groups
                                          ? memory::dims{how.groups, how.filters_of_group(), how.channels_of_group(), kernel[0], kernel[1]}
                                          : memory::dims{how.filters, how.channels, kernel[0], kernel[1]};
    const memory::desc x = desc(x_sizes, Order::nchw), y = desc(y_sizes, Order::nchw),
                       weight = desc(weight_sizes, has_groups ? Order::goihw : Order::oihw), bias = desc({how.filters}, Order::x);
    const memory::desc any_x = desc(x_sizes, Order::any), any_y = desc(y_sizes, Order::any), any_weight = desc(weight_sizes, Order::any),
                       bias_or_none = form.has_bias ? bias : memory::desc{};
    const auto forward =
        describe<dnnl::convolution_forward>(engine, how, dnnl::prop_kind::forward_training, any_x, any_weight, bias_or_none, any_y);
    const auto use = [&](int argument, const memory::desc& plain, const memory::desc& wanted, bool is_result) {
      (is_result ? results_ : inputs_).emplace_back(engine, argument, plain, wanted, is_result, scratch_bytes_);
    };
    if (form.result == ConvolutionForm::Result::y) {
      kernel_ = dnnl::convolution_forward{forward};
      use(DNNL_ARG_SRC, x, forward.src_desc(), false);
      use(DNNL_ARG_WEIGHTS, weight, forward.weights_desc(), false);
      if (form.has_bias) use(DNNL_ARG_BIAS, bias, bias, false);
      use(DNNL_ARG_DST, y, forward.dst_desc(), true);
      keep_scratchpad(engine, forward.scratchpad_desc());
    } else if (form.result == ConvolutionForm::Result::gradient_x) {
      const auto description = describe_backward<dnnl::convolution_backward_data>(engine, how, forward, any_x, any_weight, any_y);
      kernel_ = dnnl::convolution_backward_data{description};
      use(DNNL_ARG_WEIGHTS, weight, description.weights_desc(), false);
      use(DNNL_ARG_DIFF_DST, y, description.diff_dst_desc(), false);
      use(DNNL_ARG_DIFF_SRC, x, description.diff_src_desc(), true);
      keep_scratchpad(engine, description.scratchpad_desc());
    } else {
      const auto description =
          describe_backward<dnnl::convolution_backward_weights>(engine, how, forward, any_x, any_weight, bias_or_none, any_y);
      kernel_ = dnnl::convolution_backward_weights{description};
      use(DNNL_ARG_SRC, x, description.src_desc(), false);
      use(DNNL_ARG_DIFF_DST, y, description.diff_dst_desc(), false);
      use(DNNL_ARG_DIFF_WEIGHTS, weight, description.diff_weights_desc(), true);
      if (form.has_bias) use(DNNL_ARG_DIFF_BIAS, bias, bias, true);
      keep_scratchpad(engine, description.scratchpad_desc());
    }
  }

  /// Returns the bytes of scratch memory that run() needs.
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }

  /// Runs on as many threads as the kernel was made for. The operands are in the order of the constructor.
  void run(const dnnl::stream& stream, std::span<const float* const> inputs, std::span<float* const> results, std::byte* scratch) {
    constexpr std::size_t most = 5;
    std::array<dnnl_exec_arg_t, most> operands{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i].read(stream, inputs[i], scratch);
      operands[count++] = inputs_[i].operand();
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      results_[i].bind(results[i], scratch);
      operands[count++] = results_[i].operand();
    }
    scratchpad_.set_data_handle(scratch + scratchpad_offset_);
    operands[count++] = {DNNL_ARG_SCRATCHPAD, scratchpad_.get()};
    execute(kernel_, stream, std::span{operands}.first(count));
    for (ConvolutionOperand& each : results_) each.write(stream);
  }

 private:
  static constexpr auto algorithm = dnnl::algorithm::convolution_direct;

  struct Sizes {
    dnnl::memory::dims strides, dilations, padding;
    explicit Sizes(const Convolution& how)
        : strides{how.vertical.stride, how.horizontal.stride},
          dilations{how.vertical.dilation - 1, how.horizontal.dilation - 1},
          padding{how.vertical.padding, how.horizontal.padding} {}
  };
  static dnnl::primitive_attr attributes() {
    dnnl::primitive_attr all;
    all.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return all;
  }
  template <class Primitive, class... Descs>
  static typename Primitive::primitive_desc describe(const dnnl::engine& engine, const Convolution& how, dnnl::prop_kind kind,
                                                     const Descs&... descs) {
    const Sizes sizes{how};
#if DNNL_VERSION_MAJOR >= 3
    return {engine, kind, algorithm, descs..., sizes.strides, sizes.dilations, sizes.padding, sizes.padding, attributes()};
#else
    return {{kind, algorithm, descs..., sizes.strides, sizes.dilations, sizes.padding, sizes.padding}, attributes(), engine};
#endif
  }
  template <class Primitive, class... Descs>
  static typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine, const Convolution& how,
                                                              const dnnl::convolution_forward::primitive_desc& forward,
                                                              const Descs&... descs) {
    const Sizes sizes{how};
#if DNNL_VERSION_MAJOR >= 3
    return {engine, algorithm, descs..., sizes.strides, sizes.dilations, sizes.padding, sizes.padding, forward, attributes()};
#else
    return {{algorithm, descs..., sizes.strides, sizes.dilations, sizes.padding, sizes.padding}, attributes(), engine, forward};
#endif
  }
  void keep_scratchpad(const dnnl::engine& engine, const dnnl::memory::desc& desc) {
    scratchpad_ = dnnl::memory{desc, engine, nullptr};
    scratchpad_offset_ = scratch_bytes_;
    scratch_bytes_ += desc.get_size();
  }

  dnnl::primitive kernel_;
  std::vector<ConvolutionOperand> inputs_, results_;
  dnnl::memory scratchpad_;
  std::size_t scratchpad_offset_ = 0, scratch_bytes_ = 0;
};

/// The kernels of one thread, made at first use.
class ConvolutionKernels {
 public:
  /// Returns false, and computes nothing, if oneDNN has no kernel for the form. OpenMP must give the calling thread `form.threads` threads.
  bool run(const ConvolutionForm& form, std::span<const float* const> inputs, std::span<float* const> results) {
    ConvolutionKernel* const kernel = find(form);
    if (kernel == nullptr) return false;
    kernel->run(stream_, inputs, results, scratch_.data());
    return true;
  }

 private:
  /// Returns null if oneDNN has no kernel. Forgets all kernels if there are too many, so that batches with ever new numbers of rows do not
  /// fill the memory.
  ConvolutionKernel* find(const ConvolutionForm& form) {
    constexpr std::size_t most = 256;
    if (const auto found = kernels_.find(form); found != kernels_.end()) return found->second.get();
    if (kernels_.size() == most) kernels_.clear();
    std::unique_ptr<ConvolutionKernel> made;
    try {
      made = std::make_unique<ConvolutionKernel>(engine_, form);
    } catch (const dnnl::error&) {  // pdp computes it
    }
    if (made && as_index(made->scratch_bytes()) > scratch_.size())  // before the kernel is stored, as this may throw
      scratch_ = Buffer<std::byte>{as_index(made->scratch_bytes())};
    return kernels_.emplace(form, std::move(made)).first->second.get();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<ConvolutionForm, std::unique_ptr<ConvolutionKernel>> kernels_;  // null if oneDNN has none
  Buffer<std::byte> scratch_;
};

}  // namespace pdp::cpu::onednn
