// The configurations on which whole steps are measured.
#pragma once

#include <string>
#include <vector>

#include <pdp/pdp.hpp>

namespace bench {

/// A configuration: its task, the number of rows (samples) of a data-parallel rank in a step, and the widths of its linear layers; of a
/// model of images only those of input and output.
template <class TaskType>
struct Config {
  TaskType task;
  pdp::Index rows;
  std::vector<pdp::Index> widths;
  pdp::Shape input{};        // of an image, or of a text
  pdp::Index positions = 1;  // with a target each
};
template <class TaskType>
Config(TaskType, pdp::Index, std::vector<pdp::Index>, pdp::Shape = {}, pdp::Index = 1) -> Config<TaskType>;

inline auto toy() {
  using namespace pdp::nn;
  return Config{pdp::Task{Sequential{Linear{1024, 256, false}, Tanh{}, Linear{256, 256, false}, Tanh{}, Linear{256, 256, false}, Tanh{},
                                     Linear{256, 32, false}},
                          pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}},
                64,
                {1024, 256, 256, 256, 32}};
}
template <class Optimizer = pdp::optim::Adam>
auto mnist(Optimizer optimizer = {}) {
  using namespace pdp::nn;
  return Config{pdp::Task{Sequential{Linear{784, 64}, Relu{}, Linear{64, 64}, Relu{}, Linear{64, 64}, Relu{}, Linear{64, 10}},
                          pdp::loss::CrossEntropy{}, optimizer},
                128,
                {784, 64, 64, 64, 10}};
}
inline auto ae() {
  using pdp::nn::Linear;
  return Config{pdp::Task{pdp::nn::Sequential{Linear{784, 128}, Linear{128, 28}, Linear{28, 128}, Linear{128, 784}},
                          pdp::loss::MeanSquaredError{}, pdp::optim::Adam{}},
                64,
                {784, 128, 28, 128, 784}};
}
template <class Optimizer = pdp::optim::Sgd>
auto wide(Optimizer optimizer = {.lr = 0.01f}) {
  using namespace pdp::nn;
  return Config{
      pdp::Task{Sequential{Linear{1024, 2048}, Relu{}, Linear{2048, 2048}, Relu{}, Linear{2048, 2048}, Relu{}, Linear{2048, 1000}},
                pdp::loss::CrossEntropy{}, optimizer},
      128,
      {1024, 2048, 2048, 2048, 1000}};
}

/// The network of LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", Proceedings of the IEEE, 1998,
/// in its usual form today.
inline auto lenet() {
  using namespace pdp::nn;
  return Config{pdp::Task{Sequential{Conv2d{1, 6, 5, {.padding = 2}}, Relu{}, MaxPool2d{2}, Conv2d{6, 16, 5}, Relu{}, MaxPool2d{2},
                                     Flatten{}, Linear{400, 120}, Relu{}, Linear{120, 84}, Relu{}, Linear{84, 10}},
                          pdp::loss::CrossEntropy{}, pdp::optim::AdamW{.lr = 1e-3f}},
                128,
                {784, 10},
                pdp::Shape{1, 28, 28}};
}

/// A residual network of eight layers with weights. He et al., "Deep residual learning for image recognition", CVPR 2016.
inline auto resnet() {
  using namespace pdp::nn;
  const auto convolution = [](pdp::Index in, pdp::Index out, pdp::Index stride) {
    return Conv2d{in, out, 3, {.stride = stride, .padding = 1, .bias = false}};
  };
  const auto block = [&](pdp::Index in, pdp::Index out, pdp::Index stride) {
    return Sequential{convolution(in, out, stride), BatchNorm{out}, Relu{}, convolution(out, out, 1), BatchNorm{out}};
  };
  const auto wider = [&](pdp::Index in, pdp::Index out) {
    return Sum{block(in, out, 2), Conv2d{in, out, 1, {.stride = 2, .bias = false}}};
  };
  return Config{pdp::Task{Sequential{convolution(1, 16, 1), BatchNorm{16}, Relu{}, Residual{block(16, 16, 1)}, Relu{}, wider(16, 32),
                                     Relu{}, wider(32, 64), Relu{}, AdaptiveAvgPool2d{1}, Flatten{}, Linear{64, 10}},
                          pdp::loss::CrossEntropy{}, pdp::optim::AdamW{.lr = 1e-3f}},
                64,
                {784, 10},
                pdp::Shape{1, 28, 28}};
}

/// A small transformer of tokens.
inline auto gpt() {
  using namespace pdp::nn;
  constexpr pdp::Index width = 128, positions = 128, vocabulary = 128;
  const Sequential block{Residual{Sequential{LayerNorm{width}, MultiHeadAttention{width, 4, {.causal = true}}}},
                         Residual{Sequential{LayerNorm{width}, Linear{width, 4 * width}, Gelu{}, Linear{4 * width, width}}}};
  return Config{pdp::Task{Sequential{Embedding{vocabulary, width}, LearnedPositions{positions, width}, Repeat{4, block}, LayerNorm{width},
                                     Linear{width, vocabulary}},
                          pdp::loss::CrossEntropy{}, pdp::optim::AdamW{.lr = 1e-3f}},
                16,
                {positions, vocabulary},
                pdp::Shape{positions},
                positions};
}

/// Many layers of the same size.
inline auto deep() {
  using namespace pdp::nn;
  constexpr int layers = 32;
  std::vector<pdp::Index> widths(layers + 2, 512);
  widths.back() = 10;
  return Config{pdp::Task{Sequential{Repeat{layers, Sequential{Linear{512, 512}, Relu{}}}, Linear{512, 10}}, pdp::loss::CrossEntropy{},
                          pdp::optim::Adam{}},
                128, widths};
}

/// Random samples in several batches, so that no step finds its input in the cache by chance. Tokens are from 0 to outputs - 1.
template <class Target, class Sample = float>
class Batches {
 public:
  static constexpr std::size_t count = 16;

  /// Different keys give different samples. `positions`: targets of a sample that are classes.
  Batches(pdp::Index rows, pdp::Index inputs, pdp::Index outputs, int key, pdp::Index positions = 1) {
    for (std::size_t b = 0; b < count; ++b) {
      x_[b].resize(static_cast<std::size_t>(rows * inputs));
      if constexpr (std::same_as<Sample, float>) {
        pdp::random::fill_uniform<float>(pdp::random::make_key(7, key, b), 0, std::span{x_[b]});
      } else {
        pdp::random::Stream stream{pdp::random::make_key(7, key, b)};
        for (Sample& token : x_[b]) token = static_cast<Sample>(stream.below(static_cast<std::size_t>(outputs)));
      }
      if constexpr (std::same_as<Target, float>) {
        y_[b] = x_[b];
      } else {
        y_[b].resize(static_cast<std::size_t>(rows * positions));
        for (std::size_t r = 0; r < y_[b].size(); ++r) y_[b][r] = static_cast<Target>((r * 7 + b) % static_cast<std::size_t>(outputs));
      }
    }
  }
  void next() { at_ = (at_ + 1) % count; }
  [[nodiscard]] const std::vector<Sample>& x() const { return x_[at_]; }
  [[nodiscard]] const std::vector<Target>& y() const { return y_[at_]; }

 private:
  std::array<std::vector<Sample>, count> x_;
  std::array<std::vector<Target>, count> y_;
  std::size_t at_ = 0;
};

}  // namespace bench
