#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/softmax.hpp>
#include <pdp/testing/gradients.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace softmax_test {

namespace nn = pdp::nn;
using pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

template <class T>
void check(Index rows, Index width, T shift, double tolerance) {
  CAPTURE(rows, width, shift);
  std::vector<T> x = support::normal<T>(rows * width, 1);
  for (T& each : x) each = 3 * each + shift;
  const std::vector<T> gradient_y = support::normal<T>(rows * width, 2);
  std::vector<double> y, gradient_x;
  for (Index row = 0; row < rows; ++row) {
    double sum = 0, mean = 0;
    const auto at = [&](Index i) { return pdp::as_size(row * width + i); };
    for (Index i = 0; i < width; ++i) sum += std::exp(static_cast<double>(x[at(i)] - shift));
    for (Index i = 0; i < width; ++i) y.push_back(std::exp(static_cast<double>(x[at(i)] - shift)) / sum);
    for (Index i = 0; i < width; ++i) mean += y[at(i)] * static_cast<double>(gradient_y[at(i)]);
    for (Index i = 0; i < width; ++i) gradient_x.push_back(y[at(i)] * (static_cast<double>(gradient_y[at(i)]) - mean));
  }
  for (const pdp::cpu::Simd registers : support::registers())
    for (const int threads : {1, 3}) {
      const Cpu cpu{.threads = threads, .registers = registers};
      std::vector<T> found(x.size(), T{99}), gradient(x.size(), T{99}), in_place = x;
      softmax(cpu, Matrix<const T>{x.data(), rows, width}, Matrix<T>{found.data(), rows, width});
      softmax(cpu, Matrix<const T>{in_place.data(), rows, width}, Matrix<T>{in_place.data(), rows, width});
      CHECK(support::difference(found, y) < tolerance);
      CHECK(in_place == found);
      softmax_backward(cpu, Matrix<const T>{found.data(), rows, width}, Matrix<const T>{gradient_y.data(), rows, width},
                       Matrix<T>{gradient.data(), rows, width});
      CHECK(support::difference(gradient, gradient_x) < tolerance);
    }
}

}  // namespace

TEST_CASE("Softmax has the values and gradients of its definition", "[nn][softmax]") {
  for (const Index rows : {0, 1, 5, 700})
    for (const Index width : {1, 2, 7, 16, 33, 100}) {
      check<double>(rows, width, 0, 1e-14);
      check<float>(rows, width, 0, 2e-6);
    }
  check<double>(3, 20, 5e3, 1e-12);  // e^x alone would overflow
  check<float>(3, 20, -200, 1e-4);
}

TEST_CASE("Softmax acts on the vectors of the last dimension, with the gradients of central differences", "[nn][softmax]") {
  const nn::Softmax layer;
  const std::vector<float> x{1, 2, 3, 1, 2, 3};
  std::vector<float> y(6);
  nn::State<float> state{};
  state.input = Shape{2, 3};
  float* const saved = nullptr;
  layer.forward(Cpu{}, state, Matrix<const float>{x.data(), 1, 6}, Matrix<float>{y.data(), 1, 6}, saved);
  CHECK(y[0] + y[1] + y[2] == Approx(1).epsilon(1e-6));
  CHECK(y[3] == y[0]);
  for (const Shape& input : {Shape{5}, Shape{2, 3}, Shape{1, 4}}) {
    const auto found = pdp::testing::check_gradients<double>(layer, input);
    INFO(found.text());
    CHECK(found);
  }
  CHECK(pdp::testing::check_gradients<double>(nn::Sequential{nn::Linear{3, 4}, nn::Softmax{}, nn::Linear{4, 2}}, Shape{3}));
}

TEST_CASE("Softmax gives 0 for -infinity, and NaN for a row with NaN or without a finite number", "[nn][softmax]") {
  constexpr float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> x{none, 0, 0, none, none, none, NAN, 0, 0};
  std::vector<float> y(9);
  softmax(Cpu{}, Matrix<const float>{x.data(), 3, 3}, Matrix<float>{y.data(), 3, 3});
  CHECK((y[0] == 0 && y[1] == 0.5f && y[2] == 0.5f));
  for (std::size_t i = 3; i < 9; ++i) CHECK(std::isnan(y[i]));
}

}  // namespace softmax_test
