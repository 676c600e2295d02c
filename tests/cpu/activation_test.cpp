#include <pdp/cpu/activation.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using pdp::Index;
using pdp::Matrix;
using pdp::cpu::Cpu;

namespace {

template <class T, class F, class Expected>
void check_forward(Index rows, Index cols, F&& operation, Expected&& expected, double tolerance) {
  auto x = support::normal<T>(rows * cols, 1);
  for (T& value : x) value *= 3;
  std::vector<T> y(x.size() + 1, T{99});
  operation(Matrix<const T>{x.data(), rows, cols}, Matrix<T>{y.data(), rows, cols});
  CHECK(y.back() == 99);
  y.pop_back();
  std::vector<double> reference;
  for (const T value : x) reference.push_back(expected(static_cast<double>(value)));
  CHECK(support::difference(y, reference) <= tolerance);
}

template <class T, class F, class Expected>
void check_backward(Index rows, Index cols, F&& operation, const std::vector<T>& y, Expected&& expected, double tolerance) {
  const auto gradient_y = support::normal<T>(rows * cols, 2);
  std::vector<T> gradient_x(y.size() + 1, T{99});
  operation(Matrix<const T>{y.data(), rows, cols}, Matrix<const T>{gradient_y.data(), rows, cols},
            Matrix<T>{gradient_x.data(), rows, cols});
  CHECK(gradient_x.back() == 99);
  gradient_x.pop_back();
  std::vector<double> reference;
  for (std::size_t i = 0; i < y.size(); ++i) reference.push_back(expected(static_cast<double>(y[i]), static_cast<double>(gradient_y[i])));
  CHECK(support::difference(gradient_x, reference) <= tolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("relu keeps positive values, and relu_backward passes the gradient of these only", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5), cols = GENERATE(as<Index>{}, 1, 7, 33);
  check_forward<TestType>(
      rows, cols, [&](auto x, auto y) { relu(cpu, x, y); }, [](double x) { return x > 0 ? x : 0; }, 0);

  auto y = support::normal<TestType>(rows * cols, 3);
  for (TestType& value : y) value = std::max(value, TestType{0});
  check_backward<TestType>(
      rows, cols, [&](auto out, auto g, auto to) { relu_backward(cpu, out, g, to); }, y,
      [](double out, double g) { return out > 0 ? g : 0; }, 0);
}

TEMPLATE_TEST_CASE("relu and relu_backward give 0 at zero, and treat the smallest denormal as positive", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const std::vector<TestType> x{0, TestType{-0.0}, std::numeric_limits<TestType>::denorm_min()}, gradient_y{5, 5, 5};
  std::vector<TestType> y(3), gradient_x(3);
  relu(cpu, Matrix<const TestType>{x.data(), 1, 3}, Matrix<TestType>{y.data(), 1, 3});
  relu_backward(cpu, Matrix<const TestType>{y.data(), 1, 3}, Matrix<const TestType>{gradient_y.data(), 1, 3},
                Matrix<TestType>{gradient_x.data(), 1, 3});
  CHECK(y == std::vector<TestType>{0, 0, std::numeric_limits<TestType>::denorm_min()});
  CHECK(gradient_x == std::vector<TestType>{0, 0, 5});
}

TEMPLATE_TEST_CASE("hyperbolic_tangent and its gradient match std::tanh within 8 epsilon", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const double tolerance = 8 * static_cast<double>(std::numeric_limits<TestType>::epsilon());
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5), cols = GENERATE(as<Index>{}, 1, 7, 33);
  check_forward<TestType>(
      rows, cols, [&](auto x, auto y) { hyperbolic_tangent(cpu, x, y); }, [](double x) { return std::tanh(x); }, tolerance);

  auto y = support::normal<TestType>(rows * cols, 3);
  for (TestType& value : y) value = std::tanh(value);
  check_backward<TestType>(
      rows, cols, [&](auto out, auto g, auto to) { hyperbolic_tangent_backward(cpu, out, g, to); }, y,
      [](double out, double g) { return g * (1 - out * out); }, tolerance);
}

TEMPLATE_TEST_CASE("relu and hyperbolic_tangent accept infinite and huge values and propagate NaN", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  // Long enough for whole vector registers and a remainder. With AVX-512, floats have the remainder only.
  const auto each = [](TestType value) { return std::vector<TestType>(11, value); };
  const auto relu_of = [&](TestType value) {
    std::vector<TestType> x = each(value), y(11);
    relu(cpu, Matrix<const TestType>{x.data(), 1, 11}, Matrix<TestType>{y.data(), 1, 11});
    return y;
  };
  const auto tanh_of = [&](TestType value) {
    std::vector<TestType> x = each(value), y(11);
    hyperbolic_tangent(cpu, Matrix<const TestType>{x.data(), 1, 11}, Matrix<TestType>{y.data(), 1, 11});
    return y;
  };
  constexpr TestType infinity = std::numeric_limits<TestType>::infinity();
  CHECK(relu_of(infinity) == each(infinity));
  CHECK(relu_of(-infinity) == each(0));
  CHECK(support::difference(tanh_of(infinity), each(1)) < 1e-6);
  CHECK(support::difference(tanh_of(-1e30f), each(-1)) < 1e-6);
  for (const TestType value : relu_of(std::numeric_limits<TestType>::quiet_NaN())) CHECK(std::isnan(value));
  for (const TestType value : tanh_of(std::numeric_limits<TestType>::quiet_NaN())) CHECK(std::isnan(value));
}
