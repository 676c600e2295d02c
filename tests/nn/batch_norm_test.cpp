#include <pdp/core/batch_normalisation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/concat.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/sum.hpp>
#include <pdp/testing/gradients.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace batch_norm_test {

namespace nn = pdp::nn;
using pdp::BatchNormalisation, pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// The results of all parts of batch normalisation for one rank.
struct Results {
  std::vector<double> y, gradient_x, gradient;  // gradient: of weight and bias, changes of mean and variance
};

/// Computes them from their definitions. `values`: weight, bias, mean and variance of each channel.
template <class T>
Results reference(const BatchNormalisation& how, Index rows, const std::vector<T>& x, const std::vector<T>& gradient_y,
                  const std::vector<T>& values, double momentum) {
  const Index channels = how.channels, positions = how.positions;
  const auto count = static_cast<double>(rows * positions);
  Results found{std::vector<double>(x.size()), std::vector<double>(x.size()), std::vector<double>(4 * pdp::as_size(channels))};
  const auto each = [&](Index channel, auto&& visit) {
    for (Index row = 0; row < rows; ++row)
      for (Index i = 0; i < positions; ++i) visit(pdp::as_size((row * channels + channel) * positions + i));
  };
  for (Index channel = 0; channel < channels; ++channel) {
    const auto of = [&](Index number) { return static_cast<double>(values[pdp::as_size(number * channels + channel)]); };
    double mean = 0, variance = 0, sum = 0, product = 0;
    each(channel, [&](std::size_t at) { mean += static_cast<double>(x[at]) / count; });
    each(channel, [&](std::size_t at) { variance += std::pow(static_cast<double>(x[at]) - mean, 2) / count; });
    const double scale = 1 / std::sqrt(variance + how.eps);
    const auto normalised = [&](std::size_t at) { return (static_cast<double>(x[at]) - mean) * scale; };
    each(channel, [&](std::size_t at) {
      found.y[at] = normalised(at) * of(0) + of(1);
      sum += static_cast<double>(gradient_y[at]);
      product += static_cast<double>(gradient_y[at]) * normalised(at);
    });
    each(channel, [&](std::size_t at) {
      found.gradient_x[at] = of(0) * scale * (static_cast<double>(gradient_y[at]) - sum / count - normalised(at) * product / count);
    });
    const double unbiased = count > 1 ? variance * count / (count - 1) : variance;
    const std::array<double, 4> gradient{product, sum, momentum * (mean - of(2)), momentum * (unbiased - of(3))};
    for (std::size_t number = 0; number < 4; ++number)
      found.gradient[number * pdp::as_size(channels) + pdp::as_size(channel)] = gradient[number];
  }
  return found;
}

template <class T>
void check(const BatchNormalisation& how, Index rows, T shift, double tolerance, T of_running_mean = 0) {
  CAPTURE(how.channels, how.positions, rows, shift);
  const Index cols = how.channels * how.positions;
  auto x = support::normal<T>(rows * cols, 1);
  for (T& each : x) each += shift;
  const auto gradient_y = support::normal<T>(rows * cols, 2);
  auto values = support::normal<T>(4 * how.channels, 3);
  for (Index i = 0; i < how.channels; ++i) values[pdp::as_size(2 * how.channels + i)] += of_running_mean;
  const T *const weight = values.data(), *const bias = weight + how.channels, *const mean = bias + how.channels,
                 *const variance = mean + how.channels;
  const Results expected = reference(how, rows, x, gradient_y, values, 0.1);
  const pdp::StepNumbers numbers{.row_scale = 1 / static_cast<double>(rows)};
  const Matrix<const T> in{x.data(), rows, cols}, of_y{gradient_y.data(), rows, cols};
  for (const pdp::cpu::Simd registers : support::registers())
    for (const int threads : {1, 3}) {
      const Cpu cpu{.threads = threads, .registers = registers};
      std::vector<T> y(x.size(), T{99}), gradient_x(x.size(), T{99}), gradient(4 * pdp::as_size(how.channels), T{99});
      std::vector<double> sums(pdp::as_size(how.all_sums()), 99);
      batch_statistics(cpu, how, in, mean, sums.data());
      CHECK(sums[0] == static_cast<double>(rows * how.positions));
      batch_normalise(cpu, how, in, mean, static_cast<const double*>(sums.data()), weight, bias, Matrix<T>{y.data(), rows, cols});
      CHECK(support::difference(y, expected.y) < tolerance);
      batch_gradient_sums(cpu, how, in, mean, of_y, sums.data());
      batch_normalise_backward(cpu, how, in, mean, static_cast<const double*>(sums.data()), weight, of_y,
                               Matrix<T>{gradient_x.data(), rows, cols});
      CHECK(support::difference(gradient_x, expected.gradient_x) < tolerance);
      batch_parameter_gradients(cpu, how, rows, 0.1, &numbers, mean, variance, static_cast<const double*>(sums.data()), how.channels,
                                gradient.data(), false);
      CHECK(support::difference(gradient, expected.gradient) < 100 * tolerance);
      batch_parameter_gradients(cpu, how, rows, 0.1, &numbers, mean, variance, static_cast<const double*>(sums.data()), how.channels,
                                gradient.data(), true);
      for (std::size_t i = 0; i < gradient.size(); ++i)
        CHECK(static_cast<double>(gradient[i]) == Approx(2 * expected.gradient[i]).margin(100 * tolerance));
    }
}

constexpr auto convolution(Index in, Index out) { return nn::Conv2d{in, out, 3, {.padding = 1, .bias = false}}; }

}  // namespace

TEST_CASE("Batch normalisation has the values and gradients of its definition", "[nn][batch_norm]") {
  for (const Index positions : {1, 2, 9, 70})
    for (const Index channels : {1, 5, 70}) {
      check<double>({.channels = channels, .positions = positions}, 7, 0, 1e-12);
      check<float>({.channels = channels, .positions = positions}, 7, 0, 1e-5);
    }
  // Sums of squares alone would lose all digits. In the first steps, the running mean is far from the mean.
  check<float>({.channels = 3, .positions = 40}, 5, 1000, 1e-3, 1000);
  check<float>({.channels = 3, .positions = 40}, 5, 1000, 1e-3);
  check<float>({.channels = 4}, 32, 1000, 1e-3);
  check<double>({.channels = 3, .positions = 1}, 2, 1e3, 1e-7);
}

TEST_CASE("Layers with batch normalisation have the gradients of central differences", "[nn][batch_norm]") {
  const auto check = [](const auto& model, const Shape& input) {
    const auto found = pdp::testing::check_gradients<double>(model, input, {.rows = 3});
    INFO(found.text());
    CHECK(found);
  };
  check(nn::BatchNorm{4}, Shape{4});
  check(nn::BatchNorm{2}, Shape{2, 5});
  check(nn::BatchNorm{3, 0.5}, Shape{3, 2, 3});
  const nn::Residual residual{nn::Sequential{convolution(2, 2), nn::BatchNorm{2}, nn::Tanh{}, convolution(2, 2), nn::BatchNorm{2}}};
  check(residual, Shape{2, 3, 4});
  check(nn::Residual{nn::Sequential{residual, nn::Tanh{}, nn::BatchNorm{2}}}, Shape{2, 3, 2});
  check(nn::Sum{nn::Sequential{convolution(2, 3), nn::BatchNorm{3}, nn::Tanh{}, convolution(3, 3), nn::BatchNorm{3}},
                nn::Sequential{nn::Conv2d{2, 3, 1}, nn::BatchNorm{3}}, nn::Conv2d{2, 3, 1}},
        Shape{2, 3, 2});
  check(nn::Concat{nn::Conv2d{2, 3, 1}, nn::Sequential{convolution(2, 3), nn::BatchNorm{3}, nn::Tanh{}},
                   nn::Sequential{nn::Conv2d{2, 1, 1}, nn::BatchNorm{1}}},
        Shape{2, 3, 2});
}

TEST_CASE("BatchNorm normalises with the running mean and variance in an evaluation", "[nn][batch_norm]") {
  const nn::BatchNorm layer{2};
  std::vector<double> values(pdp::as_size(layer.parameter_elements()));
  layer.parameters({}, 0, [&](const nn::Parameter& parameter) {
    for (Index i = 0; i < 2; ++i)
      values[pdp::as_size(parameter.offset + i)] = std::string{parameter.name} == "weight"         ? 2
                                                   : std::string{parameter.name} == "bias"         ? 1
                                                   : std::string{parameter.name} == "running_mean" ? 3
                                                                                                   : 4;
  });
  const std::vector<double> x{3, 5, 7, 3};
  std::vector<double> y(4);
  nn::State<double> state{values.data()};
  state.input = Shape{2, 2};
  double* const saved = nullptr;
  layer.forward(Cpu{}, state, Matrix<const double>{x.data(), 1, 4}, Matrix<double>{y.data(), 1, 4}, saved);
  for (std::size_t i = 0; i < 4; ++i) CHECK(y[i] == Approx((x[i] - 3) / 2 * 2 + 1).epsilon(1e-5));
}

TEST_CASE("BatchNorm has PyTorch's parameters, and refuses samples with other channels", "[nn][batch_norm]") {
  std::vector<std::string> names;
  nn::BatchNorm{3}.parameters(
      {}, 0, [&](const nn::Parameter& parameter) { names.push_back(parameter.full_name() + (parameter.is_buffer ? " (buffer)" : "")); });
  CHECK(names == std::vector<std::string>{"weight", "bias", "running_mean (buffer)", "running_var (buffer)"});
  CHECK_THROWS_WITH(nn::outline(nn::BatchNorm{3}, Shape{4, 2, 2}),
                    Contains("expects 3 channels (the first dimension), but its input has 4"));
  const nn::Outline outline = nn::outline(nn::Sequential{nn::Linear{4, 3}, nn::BatchNorm{3}, nn::Residual{nn::BatchNorm{3}}}, Shape{4});
  CHECK(outline.layers[0].pauses == 0);
  CHECK(outline.layers[1].pauses == 1);
  CHECK(outline.layers[2].pauses == 1);
  CHECK(outline.batch_sums() == 2 * (1 + 6 + 12));
}

}  // namespace batch_norm_test
