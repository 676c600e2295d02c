#include <pdp/comm/self.hpp>
#include <pdp/core/convolution.hpp>
#include <pdp/core/pooling.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/concat.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "numbers.hpp"
#include "support.hpp"

namespace cuda_image_test {

// Compares convolutions and pooling on a GPU with those on a CPU in float. Then trains a model with them.

using gpu::Copy, gpu::exact, gpu::largest, gpu::rounded, gpu::rounding, gpu::widened;
using pdp::BFloat16, pdp::Float16, pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// Compares the three operations on both devices. The last value of each result is a guard, which must stay as it is.
template <class T>
void check_convolution(const pdp::cuda::Device& device, const pdp::Convolution& how, Index rows, bool has_bias) {
  CAPTURE(how.channels, how.filters, how.groups, how.kernel(), how.positions(), how.windows(), rows, has_bias);
  const Index x_cols = how.channels * how.positions(), y_cols = how.filters * how.windows(), weights = how.filters * how.depth();
  const auto x = exact<T>(rows * x_cols, 1), gradient_y = exact<T>(rows * y_cols, 2), weight = exact<T>(weights, 3),
             bias = exact<T>(how.filters, 4);
  const Copy<T> x_there{device, rounded<T>(x)}, gradient_there{device, rounded<T>(gradient_y)}, weight_there{device, rounded<T>(weight)},
      bias_there{device, rounded<T>(bias)};
  auto y = exact<T>(rows * y_cols + 1, 5), gradient_x = exact<T>(rows * x_cols + 1, 6);
  Copy<T> y_there{device, rounded<T>(y)}, gradient_x_there{device, rounded<T>(gradient_x)};

  convolve(Cpu{}, how, Matrix<const float>{x.data(), rows, x_cols}, weight.data(), has_bias ? bias.data() : nullptr,
           Matrix<float>{y.data(), rows, y_cols});
  convolve(device, how, x_there.matrix(rows, x_cols), weight_there.read().data(), has_bias ? bias_there.read().data() : nullptr,
           y_there.matrix(rows, y_cols));
  CHECK(support::difference(widened(y_there.values()), y) < rounding<T> * largest(y));

  convolve_backward_input(Cpu{}, how, weight.data(), Matrix<const float>{gradient_y.data(), rows, y_cols},
                          Matrix<float>{gradient_x.data(), rows, x_cols});
  convolve_backward_input(device, how, weight_there.read().data(), gradient_there.matrix(rows, y_cols),
                          gradient_x_there.matrix(rows, x_cols));
  CHECK(support::difference(widened(gradient_x_there.values()), gradient_x) < rounding<T> * largest(gradient_x));

  for (const bool accumulate : {false, true}) {
    auto of_weight = support::normal(weights + 1, 7), of_bias = support::normal(how.filters + 1, 8);
    Copy<float> of_weight_there{device, of_weight}, of_bias_there{device, of_bias};
    convolve_backward_weight(Cpu{}, how, Matrix<const float>{x.data(), rows, x_cols}, Matrix<const float>{gradient_y.data(), rows, y_cols},
                             of_weight.data(), has_bias ? of_bias.data() : nullptr, accumulate);
    convolve_backward_weight(device, how, x_there.matrix(rows, x_cols), gradient_there.matrix(rows, y_cols), of_weight_there.data(),
                             has_bias ? of_bias_there.data() : nullptr, accumulate);
    const double tolerance = 1e-5 * std::sqrt(static_cast<double>(rows * how.windows()) + 1);
    CHECK(support::difference(of_weight_there.values(), of_weight) < tolerance);
    CHECK(support::difference(of_bias_there.values(), of_bias) < tolerance);
  }
}

/// Compares forward and backward of pooling on both devices. forward(device, x, y), backward(device, x, y, gradient_y, gradient_x).
template <class T, class How, class Forward, class Backward>
void check_pooling(const pdp::cuda::Device& device, const How& how, Index rows, const Forward& forward, const Backward& backward) {
  CAPTURE(how.channels, how.positions(), how.windows(), rows);
  const Index x_cols = how.channels * how.positions(), y_cols = how.channels * how.windows();
  auto x = exact<T>(rows * x_cols, 1);
  for (float& each : x) each = std::round(each * 2) / 2;  // equal values occur
  const auto gradient_y = exact<T>(rows * y_cols, 2);
  const Copy<T> x_there{device, rounded<T>(x)}, gradient_there{device, rounded<T>(gradient_y)};
  auto y = exact<T>(rows * y_cols + 1, 3), gradient_x = exact<T>(rows * x_cols + 1, 4);
  Copy<T> y_there{device, rounded<T>(y)}, gradient_x_there{device, rounded<T>(gradient_x)};

  forward(Cpu{}, Matrix<const float>{x.data(), rows, x_cols}, Matrix<float>{y.data(), rows, y_cols});
  forward(device, x_there.matrix(rows, x_cols), y_there.matrix(rows, y_cols));
  CHECK(support::difference(widened(y_there.values()), y) < rounding<T> * largest(y));
  backward(Cpu{}, Matrix<const float>{x.data(), rows, x_cols}, Matrix<const float>{y.data(), rows, y_cols},
           Matrix<const float>{gradient_y.data(), rows, y_cols}, Matrix<float>{gradient_x.data(), rows, x_cols});
  backward(device, x_there.matrix(rows, x_cols), Matrix<const T>{y_there.matrix(rows, y_cols)}, gradient_there.matrix(rows, y_cols),
           gradient_x_there.matrix(rows, x_cols));
  CHECK(support::difference(widened(gradient_x_there.values()), gradient_x) < rounding<T> * largest(gradient_x));
}

/// Returns the losses of some epochs of training.
template <class... How>
std::vector<double> losses(const How&... how) {
  using namespace pdp::nn;
  const pdp::Task task{Sequential{Conv2d{1, 6, 3, {.padding = 1}}, Tanh{}, Residual{Sequential{Conv2d{6, 6, 3, {.padding = 1}}, Tanh{}}},
                                  MaxPool2d{2}, Concat{Conv2d{6, 5, 2, {.bias = false}}, Conv2d{6, 3, 2}}, Tanh{}, AvgPool2d{{1, 2}},
                                  AdaptiveAvgPool2d{1}, Flatten{}, Linear{8, 4}},
                       pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};
  const std::vector<float> x = support::normal(100 * 24, 42);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 24) classes.push_back(static_cast<std::int32_t>(std::max_element(row, row + 4) - row));
  pdp::comm::Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, task, {.global_batch = 32, .seed = 3, .input = Shape{1, 4, 6}}, how...};
  std::vector<double> found;
  trainer.fit(
      pdp::data::InMemory<std::int32_t>{Shape{1, 4, 6}, x, classes}, {.epochs = 3}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) { found.push_back(totals.mean_loss()); });
  return found;
}

}  // namespace

TEMPLATE_TEST_CASE("Convolutions on a GPU match those on a CPU", "[cuda]", float, BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 3}) {
    check_convolution<TestType>(
        *device, {.channels = 1, .filters = 6, .vertical = {.extent = 9, .size = 5, .padding = 2}, .horizontal = {.extent = 7, .size = 3}},
        rows, true);
    check_convolution<TestType>(*device,
                                {.channels = 6,
                                 .filters = 4,
                                 .groups = 2,
                                 .vertical = {.extent = 8, .size = 3, .stride = 2, .padding = 1},
                                 .horizontal = {.extent = 10, .size = 2, .stride = 3, .padding = 2, .dilation = 2}},
                                rows, false);
  }
  check_convolution<TestType>(*device,
                              {.channels = 4,
                               .filters = 6,
                               .groups = 2,
                               .vertical = {.extent = 21, .size = 3, .padding = 1},
                               .horizontal = {.extent = 19, .size = 3, .padding = 1}},
                              4, true);  // several slices of the windows
  // More filters, depth and windows than a tile, and several slices of the windows.
  check_convolution<TestType>(*device,
                              {.channels = 9,
                               .filters = 70,
                               .vertical = {.extent = 13, .size = 3, .padding = 1},
                               .horizontal = {.extent = 11, .size = 3, .padding = 1}},
                              5, true);
}

TEMPLATE_TEST_CASE("Pooling on a GPU matches that on a CPU", "[cuda]", float, BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  const auto check = [&](const pdp::Pooling& how, Index rows) {
    check_pooling<TestType>(
        *device, how, rows, [&](const auto& on, auto x, auto y) { max_pool(on, how, x, y); },
        [&](const auto& on, auto x, auto y, auto gradient_y, auto gradient_x) {
          max_pool_backward(on, how, x, y, gradient_y, gradient_x);
        });
    check_pooling<TestType>(
        *device, how, rows, [&](const auto& on, auto x, auto y) { average_pool(on, how, x, y); },
        [&](const auto& on, auto, auto, auto gradient_y, auto gradient_x) { average_pool_backward(on, how, gradient_y, gradient_x); });
  };
  for (const Index rows : {0, 1, 5}) {
    check({3, {.extent = 6, .size = 2, .stride = 2}, {.extent = 5, .size = 2, .stride = 2}}, rows);
    check({2, {.extent = 9, .size = 2, .dilation = 3}, {.extent = 8, .size = 3, .stride = 2, .padding = 2, .dilation = 2}}, rows);
    check({2, {.extent = 7, .size = 3, .stride = 2, .padding = 1}, {.extent = 4, .size = 3, .padding = 1}, false}, rows);
    const pdp::AdaptivePooling adaptive{2, {.extent = 7, .count = 3}, {.extent = 4, .count = 5}};
    check_pooling<TestType>(
        *device, adaptive, rows, [&](const auto& on, auto x, auto y) { average_pool(on, adaptive, x, y); },
        [&](const auto& on, auto, auto, auto gradient_y, auto gradient_x) { average_pool_backward(on, adaptive, gradient_y, gradient_x); });
  }
}

TEST_CASE("max_pool on a GPU gives NaN for a window with NaN", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const std::size_t bad : {0UL, 1UL, 4UL, 5UL}) {
    std::vector<float> x(16, 1.0f);
    x[bad] = NAN;
    const Copy<float> x_there{*device, x};
    Copy<float> y_there{*device, std::vector<float>(4)};
    max_pool(*device, {.vertical = {.extent = 4, .size = 2, .stride = 2}, .horizontal = {.extent = 4, .size = 2, .stride = 2}},
             x_there.matrix(1, 16), y_there.matrix(1, 4));
    const auto y = y_there.values();
    for (std::size_t i = 0; i < 4; ++i) CHECK(std::isnan(y[i]) == (i == 0));
  }
}

TEMPLATE_TEST_CASE("copy_columns copies some columns of each row on a GPU, and no others", "[cuda]", float, BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  const auto from = exact<TestType>(5 * 7, 1), to = exact<TestType>(5 * 9, 2);
  const Copy<TestType> from_there{*device, rounded<TestType>(from)};
  Copy<TestType> to_there{*device, rounded<TestType>(to)};
  copy_columns(*device, from_there.matrix(5, 7), 2, to_there.matrix(5, 9), 3, 4);
  const auto found = widened(to_there.values());
  for (std::size_t row = 0; row < 5; ++row)
    for (std::size_t col = 0; col < 9; ++col)
      CHECK(found[row * 9 + col] == (col >= 3 && col < 7 ? from[row * 7 + 2 + col - 3] : to[row * 9 + col]));
}

TEST_CASE("A model of images has the same losses on a GPU as on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto here = losses(), there = losses(*device);
  REQUIRE(here.size() == there.size());
  for (std::size_t step = 0; step < here.size(); ++step) CHECK(there[step] == Approx(here[step]).epsilon(1e-4));
}

}  // namespace cuda_image_test
