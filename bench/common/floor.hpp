// The floor of a step: the products and convolutions of a model alone, by the same library.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <pdp/pdp.hpp>

namespace bench {

/// The matrix products and convolutions of a step on their own memory: forward, the gradient of each weight, and the gradient of each input
/// but the first. A convolution has its bias, which it adds in the same kernel. All other work of a step is left out.
class Floor {
 public:
  template <class Model>
  Floor(const Model& model, pdp::Shape shape, pdp::Index rows, int threads) : cpu_{.threads = threads}, rows_{rows} {
    pdp::nn::for_each_leaf(model, {}, [&]<class L>(const L& layer, const pdp::nn::Path&) {
      if (!shape.known()) shape = pdp::Shape{layer.input_elements()};
      if constexpr (std::is_same_v<L, pdp::nn::Linear>) add(layer.in, layer.out, layer.in * layer.out, {});
      if constexpr (std::is_same_v<L, pdp::nn::Conv2d>) {
        const pdp::Convolution how = layer.convolution(shape);
        add(shape.elements(), layer.output(shape).elements(), how.filters * how.depth(), how);
      }
      shape = layer.output(shape);
    });
  }

  void run() {
    for (Work& each : work_) forward(each);
    for (std::size_t i = work_.size(); i-- > 0;) backward(work_[i], i > 0);
  }

 private:
  using In = pdp::Matrix<const float>;
  /// The tensors of a linear layer, or of a convolution, which has filters.
  struct Work {
    pdp::Index in, out;
    pdp::Convolution how;
    bool is_convolution;
    std::size_t x, y;  // numbers of the values and gradients
    pdp::Buffer<float> weight, weight_gradient, bias, bias_gradient;
  };

  void add(pdp::Index in, pdp::Index out, pdp::Index weights, const pdp::Convolution& how) {
    if (values_.empty() || values_.back().size() != rows_ * in) tensor(in);
    const std::size_t x = values_.size() - 1;
    tensor(out);
    const bool is_convolution = how.filters > 1 || how.depth() > 1;
    Work& work = work_.emplace_back(Work{in, out, how, is_convolution, x, x + 1, pdp::Buffer<float>{weights}, pdp::Buffer<float>{weights},
                                         pdp::Buffer<float>{how.filters}, pdp::Buffer<float>{how.filters}});
    pdp::random::fill_uniform<float>(pdp::random::make_key(2, work_.size()), 0, work.weight.span());
  }
  void tensor(pdp::Index width) {
    for (auto* all : {&values_, &gradients_})
      pdp::random::fill_uniform<float>(pdp::random::make_key(1, values_.size()), 0, all->emplace_back(rows_ * width).span());
  }

  [[nodiscard]] pdp::Matrix<float> matrix(pdp::Buffer<float>& of, pdp::Index width) const { return {of.data(), rows_, width}; }
  void forward(Work& of) {
    const In x = matrix(values_[of.x], of.in);
    const auto y = matrix(values_[of.y], of.out);
    if (of.is_convolution)
      convolve(cpu_, of.how, x, std::as_const(of.weight).data(), std::as_const(of.bias).data(), y);
    else
      gemm(cpu_, x, In{of.weight.data(), of.in, of.out}, y, false);
  }
  void backward(Work& of, bool needs_input) {
    const In x = matrix(values_[of.x], of.in), gradient_y = matrix(gradients_[of.y], of.out);
    const auto gradient_x = matrix(gradients_[of.x], of.in);
    if (of.is_convolution) {
      if (needs_input) convolve_backward_input(cpu_, of.how, std::as_const(of.weight).data(), gradient_y, gradient_x);
      convolve_backward_weight(cpu_, of.how, x, gradient_y, of.weight_gradient.data(), of.bias_gradient.data(), false);
    } else {
      if (needs_input) gemm_nt(cpu_, gradient_y, In{of.weight.data(), of.in, of.out}, gradient_x, false);
      gemm_tn(cpu_, x, gradient_y, pdp::Matrix<float>{of.weight_gradient.data(), of.in, of.out}, false);
    }
  }

  pdp::cpu::Cpu cpu_;
  pdp::Index rows_;
  std::vector<pdp::Buffer<float>> values_, gradients_;
  std::vector<Work> work_;
};

}  // namespace bench
