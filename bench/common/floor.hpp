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
/// in the same kernel. Pooling is pdp's, which takes less time than oneDNN's primitive. The products of attention are those of whole heads,
/// also if it is causal, each with operands of its own. All other work of a step is left out.
class Floor {
 public:
  /// `shape`: of a sample; unset if the first layer defines it.
  template <class Model>
  Floor(const Model& model, pdp::Shape shape, pdp::Index rows, int threads) : cpu_{.threads = threads}, rows_{rows} {
    add_block(model, shape);
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
    std::variant<Product, pdp::Convolution, pdp::Pooling, pdp::Attention> kind;
    pdp::Index rows, in, out;  // of x, and values of a row of x and y
    std::size_t x, y;          // numbers of the values and gradients
    pdp::Buffer<float> weight, weight_gradient, bias, bias_gradient;
  };

  template <class Model>
  void add_block(const Model& model, pdp::Shape shape) {
    pdp::nn::for_each_leaf(model, {}, [&]<class L>(const L& layer, const pdp::nn::Path&) {
      if (!shape.known()) shape = pdp::Shape{layer.input_elements()};
      const pdp::Shape out = layer.output(shape);
      if constexpr (requires { layer.block(); }) add_block(layer.block(), shape);
      if constexpr (requires { layer.for_each_block([](const auto&) {}); })
        layer.for_each_block([&](const auto& block) { add_block(block, shape); });
      if constexpr (std::is_same_v<L, pdp::nn::Linear>) add_product(shape.elements(), layer.in, layer.out);
      if constexpr (std::is_same_v<L, pdp::nn::MultiHeadAttention>) {
        const pdp::Attention how = layer.attention(shape);
        add_product(shape.elements(), layer.width(), how.row());
        // The scores of a head follow its queries, keys and values, and its output follows them.
        add(how, rows_ * how.heads, how.positions * how.width, how.positions * how.positions, 0, 0);
        add_product(shape.elements(), layer.width(), layer.width());
      }
      if constexpr (std::is_same_v<L, pdp::nn::Conv2d>) {
        const pdp::Convolution how = layer.convolution(shape);
        add(how, rows_, shape.elements(), out.elements(), how.filters * how.depth(), how.filters);
      }
      if constexpr (std::is_same_v<L, pdp::nn::MaxPool2d>) add(layer.pooling(shape), rows_, shape.elements(), out.elements(), 0, 0);
      shape = out;
    });
  }

  /// A product of all vectors of `in` values.
  void add_product(pdp::Index of_sample, pdp::Index in, pdp::Index out) { add(Product{}, rows_ * of_sample / in, in, out, in * out, out); }
  template <class Kind>
  void add(const Kind& kind, pdp::Index rows, pdp::Index in, pdp::Index out, pdp::Index weights, pdp::Index biases) {
    if (values_.empty() || values_.back().size() != rows * in) add_tensor(rows * in);
    const std::size_t x = values_.size() - 1;
    add_tensor(rows * out);
    const auto buffer = [](pdp::Index elements) { return pdp::Buffer<float>{elements}; };
    work_.push_back({kind, rows, in, out, x, x + 1, buffer(weights), buffer(weights), buffer(biases), buffer(biases)});
    pdp::random::fill_uniform<float>(pdp::random::make_key(2, work_.size()), 0, work_.back().weight.span());
  }
  void add_tensor(pdp::Index elements) {
    for (auto* all : {&values_, &gradients_}) {
      all->emplace_back(elements);
      pdp::random::fill_uniform<float>(pdp::random::make_key(1, values_.size()), 0, all->back().span());
    }
  }
  [[nodiscard]] Out x(Work& of) { return {values_[of.x].data(), of.rows, of.in}; }
  [[nodiscard]] Out y(Work& of) { return {values_[of.y].data(), of.rows, of.out}; }
  [[nodiscard]] Out gradient_x(Work& of) { return {gradients_[of.x].data(), of.rows, of.in}; }
  [[nodiscard]] Out gradient_y(Work& of) { return {gradients_[of.y].data(), of.rows, of.out}; }

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

  /// Calls visit(x, gradient of x, y, gradient of y) for each head of each sample.
  template <class Visit>
  void for_each_head(const pdp::Attention& how, Work& of, const Visit& visit) {
    const auto head = [](const Out& all, pdp::Index row, pdp::Index cols) { return Out{all.row(row), all.cols / cols, cols}; };
    for (pdp::Index row = 0; row < of.rows; ++row)
      visit(head(x(of), row, how.width), head(gradient_x(of), row, how.width), head(y(of), row, how.positions),
            head(gradient_y(of), row, how.positions));
  }
  void forward(const pdp::Attention& how, Work& of) {
    for_each_head(how, of, [&](Out x, Out other, Out y, Out) {
      gemm_nt(cpu_, In{x}, In{other}, y, false);
      gemm(cpu_, In{y}, In{x}, other, false);
    });
  }
  void backward(const pdp::Attention& how, Work& of, bool) {
    for_each_head(how, of, [&](Out x, Out gradient_x, Out y, Out gradient_y) {
      gemm_nt(cpu_, In{x}, In{x}, y, false);           // the scores again
      gemm_nt(cpu_, In{gradient_x}, In{x}, y, false);  // the gradients of weights, values, keys and queries
      gemm_tn(cpu_, In{gradient_y}, In{x}, gradient_x, false);
      gemm_tn(cpu_, In{gradient_y}, In{x}, gradient_x, false);
      gemm(cpu_, In{gradient_y}, In{x}, gradient_x, false);
    });
  }

  pdp::cpu::Cpu cpu_;
  pdp::Index rows_;
  std::vector<pdp::Buffer<float>> values_, gradients_;
  std::vector<Work> work_;
};

}  // namespace bench
