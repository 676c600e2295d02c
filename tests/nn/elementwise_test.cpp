#include <pdp/core/finite.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/elementwise.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/testing/gradients.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"

namespace elementwise_test {

namespace nn = pdp::nn;
using pdp::Index, pdp::Matrix;
using pdp::cpu::Cpu;

namespace {

// [square]
constexpr nn::Elementwise square{[](auto x) { return x * x; }, [](auto x, auto) { return 2 * x; }};
// [square]

/// Returns the values of a layer for inputs of T, whose number is odd so that vectors are not full.
template <class T, class L>
std::vector<T> values(const L& layer, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  const auto cols = static_cast<Index>(x.size());
  layer.forward(Cpu{}, nn::State<T>{}, Matrix<const T>{x.data(), 1, cols}, Matrix<T>{y.data(), 1, cols}, static_cast<T*>(nullptr));
  return y;
}
template <class T>
std::vector<T> inputs() {
  std::vector<T> x;
  for (int i = -65; i <= 65; ++i) x.push_back(static_cast<T>(i) / 8);
  return x;
}
template <class L, class F>
void check_values(const L& layer, const F& expected) {
  const auto wide = inputs<double>();
  const auto narrow = inputs<float>();
  const auto doubles = values(layer, wide);
  const auto floats = values(layer, narrow);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    CAPTURE(wide[i]);
    CHECK(doubles[i] == Approx(expected(wide[i])).epsilon(1e-12).margin(1e-12));
    CHECK(static_cast<double>(floats[i]) == Approx(expected(wide[i])).epsilon(2e-6).margin(1e-6));
  }
}
template <class L>
void check_gradients(const L& layer) {
  const auto alone = pdp::testing::check_gradients(layer, pdp::Shape{7});
  INFO(alone.text());
  CHECK(alone);
  const auto inside = pdp::testing::check_gradients(nn::Sequential{nn::Linear{5, 9}, layer, nn::Linear{9, 2}}, pdp::Shape{5});
  INFO(inside.text());
  CHECK(inside);
  const auto floats = pdp::testing::check_gradients<float>(layer, pdp::Shape{7});
  INFO(floats.text());
  CHECK(floats);
}
double gate(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("Sigmoid, Silu, Gelu, LeakyRelu and a function of one's own have the values of their definitions", "[nn][elementwise]") {
  check_values(nn::Sigmoid{}, gate);
  check_values(nn::Silu{}, [](double x) { return x * gate(x); });
  check_values(nn::Gelu{}, [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; });
  check_values(nn::LeakyRelu{0.25f}, [](double x) { return x > 0 ? x : x / 4; });
  check_values(square, [](double x) { return x * x; });
}

TEST_CASE("Sigmoid, Silu, Gelu, LeakyRelu and a function of one's own have the gradients of central differences", "[nn][elementwise]") {
  check_gradients(nn::Sigmoid{});
  check_gradients(nn::Silu{});
  check_gradients(nn::Gelu{});
  check_gradients(nn::LeakyRelu{0.25f});
  check_gradients(square);
}

TEST_CASE("Elementwise works in place only if the derivative needs only the value", "[nn][elementwise]") {
  STATIC_REQUIRE(nn::works_in_place<nn::Sigmoid>);
  STATIC_REQUIRE_FALSE(nn::works_in_place<nn::Silu>);
  STATIC_REQUIRE_FALSE(nn::works_in_place<std::remove_const_t<decltype(square)>>);
  STATIC_REQUIRE(nn::works_in_place<decltype(nn::Elementwise{[](auto x) { return x; }, [](auto y) { return 0 * y + 1; }})>);
  CHECK(std::string{nn::Gelu::name} == "Gelu");
  CHECK(std::string{decltype(square)::name} == "Elementwise");
}

TEST_CASE("Activations keep NaN, and are finite for the largest inputs", "[nn][elementwise]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), most = 1e30f;
  const std::vector<float> x{nan, most, -most};
  const auto check = [&](const auto& layer, float high, float low) {
    const auto y = values(layer, x);
    CHECK(pdp::is_nan(y[0]));
    CHECK(y[1] == high);
    CHECK(y[2] == Approx(low).margin(1e-6));
  };
  check(nn::Sigmoid{}, 1, 0);
  check(nn::Silu{}, most, 0);
  check(nn::Gelu{}, most, 0);
  check(nn::LeakyRelu{0.5f}, most, -most / 2);
}

}  // namespace elementwise_test
