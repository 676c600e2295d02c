#include <pdp/comm/self.hpp>
#include <pdp/core/group_normalisation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/group_norm.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/rms_norm.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "numbers.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace cuda_normalisation_test {

// Compares normalisation and softmax on a GPU with those on a CPU in float. Then trains a model with normalisation layers.

using gpu::Copy, gpu::exact, gpu::largest, gpu::rounded, gpu::rounding, gpu::widened;
using pdp::BFloat16, pdp::Float16, pdp::Index, pdp::Matrix;
using pdp::cpu::Cpu;

namespace {

/// Compares the three operations on both devices. The last value of each result is a guard, which must stay as it is.
template <class T>
void check_operations(const pdp::cuda::Device& device, const pdp::GroupNormalisation& how, Index rows, Index positions, bool has_bias) {
  const Index cols = how.channels * positions;
  INFO(rows << " rows of " << how.channels << " channels of " << positions << ", " << how.groups << " groups, bias " << has_bias);
  const auto x = exact<T>(rows * cols, 1, how.centred ? 8.0f : 0.0f), gradient_y = exact<T>(rows * cols, 2),
             weight = exact<T>(how.channels, 3), bias = exact<T>(how.channels, 4);
  const Copy<T> x_there{device, rounded<T>(x)}, gradient_there{device, rounded<T>(gradient_y)}, weight_there{device, rounded<T>(weight)},
      bias_there{device, rounded<T>(bias)};
  const auto guarded = exact<T>(rows * cols + 1, 5);
  auto y = guarded, gradient_x = guarded;
  Copy<T> y_there{device, rounded<T>(y)}, gradient_x_there{device, rounded<T>(gradient_x)};
  const auto here = [&](const std::vector<float>& of) { return Matrix<const float>{of.data(), rows, cols}; };

  normalise(Cpu{}, how, here(x), weight.data(), has_bias ? bias.data() : nullptr, Matrix<float>{y.data(), rows, cols});
  normalise(device, how, x_there.matrix(rows, cols), weight_there.read().data(), has_bias ? bias_there.read().data() : nullptr,
            y_there.matrix(rows, cols));
  CHECK(support::difference(widened(y_there.values()), y) < rounding<T>);

  normalise_backward_input(Cpu{}, how, here(x), weight.data(), here(gradient_y), Matrix<float>{gradient_x.data(), rows, cols});
  normalise_backward_input(device, how, x_there.matrix(rows, cols), weight_there.read().data(), gradient_there.matrix(rows, cols),
                           gradient_x_there.matrix(rows, cols));
  CHECK(support::difference(widened(gradient_x_there.values()), gradient_x) < rounding<T> * largest(gradient_x));

  for (const bool accumulate : {false, true}) {
    auto of_weight = support::normal(how.channels + 1, 6), of_bias = support::normal(how.channels + 1, 7);
    Copy<float> of_weight_there{device, of_weight}, of_bias_there{device, of_bias};
    normalise_backward_weight(Cpu{}, how, here(x), here(gradient_y), of_weight.data(), has_bias ? of_bias.data() : nullptr, accumulate);
    normalise_backward_weight(device, how, x_there.matrix(rows, cols), gradient_there.matrix(rows, cols), of_weight_there.data(),
                              has_bias ? of_bias_there.data() : nullptr, accumulate);
    const double tolerance = 1e-5 + 1e-7 * static_cast<double>(rows * positions);
    CHECK(support::difference(of_weight_there.values(), of_weight) < tolerance);
    CHECK(support::difference(of_bias_there.values(), of_bias) < tolerance);
  }
}

/// Returns the losses of some epochs of training.
template <class... How>
std::vector<double> losses(const How&... how) {
  using namespace pdp::nn;
  const pdp::Task task{Sequential{Linear{8, 24}, LayerNorm{24}, Tanh{}, Residual{Sequential{RmsNorm{24}, Linear{24, 24}, Tanh{}}},
                                  GroupNorm{3, 24}, Linear{24, 4}},
                       pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 3e-3f}};
  pdp::comm::Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, task, {.global_batch = 32, .seed = 3}, how...};
  std::vector<double> found;
  trainer.fit(
      tasks::samples(100), {.epochs = 3}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) { found.push_back(totals.mean_loss()); });
  return found;
}

}  // namespace

TEMPLATE_TEST_CASE("Normalisation on a GPU matches that on a CPU", "[cuda]", float, BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 5, 70})
    for (const Index width : {1, 7, 33, 257}) {
      const bool has_bias = rows != 5;
      if (width > 1) check_operations<TestType>(*device, {.channels = width}, rows, 1, has_bias);
      check_operations<TestType>(*device, {.channels = width, .eps = 0.25}, rows, 1, has_bias);
      check_operations<TestType>(*device, {.channels = width, .eps = 0.25, .centred = false}, rows, 1, has_bias);
    }
  for (const Index rows : {0, 1, 5, 70})
    for (const Index groups : {1, 2, 6})
      for (const Index positions : {1, 5, 40})
        if (groups < 6 || positions > 1) check_operations<TestType>(*device, {.channels = 6, .groups = groups}, rows, positions, true);
  check_operations<TestType>(*device, {.channels = 2500}, 9, 1, true);              // a block for each group
  check_operations<TestType>(*device, {.channels = 6, .groups = 2}, 3, 900, true);  // the same, with positions
  if constexpr (std::same_as<TestType, float>)                                      // more channels than slices have room for
    check_operations<TestType>(*device, {.channels = 140'000, .groups = 100}, 3, 1, true);
}

TEMPLATE_TEST_CASE("Softmax on a GPU matches that on a CPU", "[cuda]", float, BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 5, 70})
    for (const Index width : {1, 7, 33, 257}) {
      CAPTURE(rows, width);
      const auto x = exact<TestType>(rows * width, 1, 8.0f), gradient_y = exact<TestType>(rows * width, 2);
      auto y = exact<TestType>(rows * width + 1, 3), gradient_x = exact<TestType>(rows * width + 1, 4);
      const Copy<TestType> x_there{*device, rounded<TestType>(x)}, gradient_there{*device, rounded<TestType>(gradient_y)};
      Copy<TestType> y_there{*device, rounded<TestType>(y)}, gradient_x_there{*device, rounded<TestType>(gradient_x)};
      softmax(Cpu{}, Matrix<const float>{x.data(), rows, width}, Matrix<float>{y.data(), rows, width});
      softmax(*device, x_there.matrix(rows, width), y_there.matrix(rows, width));
      auto scaled = widened(y_there.values()), expected = y;  // values are near 1 / width
      for (auto* all : {&scaled, &expected})
        for (float& each : *all) each *= static_cast<float>(width);
      CHECK(support::difference(scaled, expected) < rounding<TestType>);
      const auto found_y = widened(y_there.values());
      softmax_backward(Cpu{}, Matrix<const float>{found_y.data(), rows, width}, Matrix<const float>{gradient_y.data(), rows, width},
                       Matrix<float>{gradient_x.data(), rows, width});
      softmax_backward(*device, Matrix<const TestType>{y_there.matrix(rows, width)}, gradient_there.matrix(rows, width),
                       gradient_x_there.matrix(rows, width));
      CHECK(support::difference(widened(gradient_x_there.values()), gradient_x) < rounding<TestType> * largest(gradient_x));
    }
}

TEST_CASE("Normalisation on a GPU keeps digits if the mean is large and the variance small", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  constexpr Index rows = 5, width = 333;
  auto x = support::normal(rows * width, 1);
  for (float& each : x) each = 3e5f + 0.75f * each;
  std::fill(x.begin(), x.begin() + width, 1e9f);  // a variance of 0
  const std::vector<float> weight(width, 1.0f);
  std::vector<float> y(x.size());
  const Copy<float> x_there{*device, x}, weight_there{*device, weight};
  Copy<float> y_there{*device, y};
  const pdp::GroupNormalisation how{.channels = width};
  constexpr const float* no_bias = nullptr;
  normalise(Cpu{}, how, Matrix<const float>{x.data(), rows, width}, weight.data(), no_bias, Matrix<float>{y.data(), rows, width});
  normalise(*device, how, x_there.matrix(rows, width), weight_there.read().data(), no_bias, y_there.matrix(rows, width));
  CHECK(support::difference(y_there.values(), y) < 1e-5);
}

TEST_CASE("A model with normalisation layers has the losses of a CPU on a GPU, within 0.03 also in bfloat16", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto expected = losses();
  CHECK(expected.back() < 0.9 * expected.front());
  CHECK(support::difference(losses(*device), expected) < 1e-4);
  CHECK(support::difference(losses(*device, pdp::MixedBfloat16{}), expected) < 0.03);
}

}  // namespace cuda_normalisation_test
