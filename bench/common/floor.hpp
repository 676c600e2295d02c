// The floor of a step: the products, convolutions and pooling of a model alone.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pdp/pdp.hpp>

namespace bench {

/// The matrix products, convolutions and maximum pooling of a step on their own memory: forward, the gradient of each weight, and the
/// gradient of each input but the first. Products and convolutions are those of the library that pdp uses, and a convolution adds its bias
/// in the same kernel. Pooling is pdp's, which takes less time than oneDNN's primitive. All other work of a step is left out.
class Floor {
 public:
  /// `shape`: of a sample; unset if the first layer defines it.
  template <class Model>
  Floor(const Model& model, pdp::Shape shape, pdp::Index rows, int threads) : cpu_{.threads = threads}, rows_{rows} {
    pdp::nn::for_each_leaf(model, {}, [&]<class L>(const L& layer, const pdp::nn::Path&) {
      if (!shape.known()) shape = pdp::Shape{layer.input_elements()};
      const pdp::Shape out = layer.output(shape);
      if constexpr (std::is_same_v<L, pdp::nn::Linear>) add(Product{}, layer.in, layer.out, layer.in * layer.out, layer.out);
      if constexpr (std::is_same_v<L, pdp::nn::Conv2d>) {
        const pdp::Convolution how = layer.convolution(shape);
        add(how, shape.elements(), out.elements(), how.filters * how.depth(), how.filters);
      }
      if constexpr (std::is_same_v<L, pdp::nn::MaxPool2d>) add(layer.pooling(shape), shape.elements(), out.elements(), 0, 0);
      shape = out;
    });
  }

  void run() {
    for (Work& each : work_) std::visit([&](const auto& kind) { forward(kind, each); }, each.kind);
    for (std::size_t i = work_.size(); i-- > 0;) std::visit([&](const auto& kind) { backward(kind, work_[i], i > 0); }, work_[i].kind);
  }

 private:
  using In = pdp::Matrix<const float>;
  using Out = pdp::Matrix<float>;
  struct Product {};
  /// The tensors of a layer.
  struct Work {
    std::variant<Product, pdp::Convolution, pdp::Pooling> kind;
    pdp::Index in, out;  // values of a sample
    std::size_t x, y;    // numbers of the values and gradients
    pdp::Buffer<float> weight, weight_gradient, bias, bias_gradient;
  };

  template <class Kind>
  void add(const Kind& kind, pdp::Index in, pdp::Index out, pdp::Index weights, pdp::Index biases) {
    if (values_.empty() || values_.back().size() != rows_ * in) add_tensor(in);
    const std::size_t x = values_.size() - 1;
    add_tensor(out);
    const auto buffer = [](pdp::Index elements) { return pdp::Buffer<float>{elements}; };
    work_.push_back({kind, in, out, x, x + 1, buffer(weights), buffer(weights), buffer(biases), buffer(biases)});
    pdp::random::fill_uniform<float>(pdp::random::make_key(2, work_.size()), 0, work_.back().weight.span());
  }
  void add_tensor(pdp::Index width) {
    for (auto* all : {&values_, &gradients_}) {
      all->emplace_back(rows_ * width);
      pdp::random::fill_uniform<float>(pdp::random::make_key(1, values_.size()), 0, all->back().span());
    }
  }
  [[nodiscard]] Out x(Work& of) { return {values_[of.x].data(), rows_, of.in}; }
  [[nodiscard]] Out y(Work& of) { return {values_[of.y].data(), rows_, of.out}; }
  [[nodiscard]] Out gradient_x(Work& of) { return {gradients_[of.x].data(), rows_, of.in}; }
  [[nodiscard]] Out gradient_y(Work& of) { return {gradients_[of.y].data(), rows_, of.out}; }

  void forward(const Product&, Work& of) { gemm(cpu_, In{x(of)}, In{of.weight.data(), of.in, of.out}, y(of), false); }
  void backward(const Product&, Work& of, bool needs_input) {
    if (needs_input) gemm_nt(cpu_, In{gradient_y(of)}, In{of.weight.data(), of.in, of.out}, gradient_x(of), false);
    gemm_tn(cpu_, In{x(of)}, In{gradient_y(of)}, Out{of.weight_gradient.data(), of.in, of.out}, false);
  }
  void forward(const pdp::Convolution& how, Work& of) {
    convolve(cpu_, how, In{x(of)}, std::as_const(of.weight).data(), std::as_const(of.bias).data(), y(of));
  }
  void backward(const pdp::Convolution& how, Work& of, bool needs_input) {
    if (needs_input) convolve_backward_input(cpu_, how, std::as_const(of.weight).data(), In{gradient_y(of)}, gradient_x(of));
    convolve_backward_weight(cpu_, how, In{x(of)}, In{gradient_y(of)}, of.weight_gradient.data(), of.bias_gradient.data(), false);
  }
  void forward(const pdp::Pooling& how, Work& of) { max_pool(cpu_, how, In{x(of)}, y(of)); }
  void backward(const pdp::Pooling& how, Work& of, bool) {
    max_pool_backward(cpu_, how, In{x(of)}, In{y(of)}, In{gradient_y(of)}, gradient_x(of));
  }

  pdp::cpu::Cpu cpu_;
  pdp::Index rows_;
  std::vector<pdp::Buffer<float>> values_, gradients_;
  std::vector<Work> work_;
};

}  // namespace bench
