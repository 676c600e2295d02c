#include <pdp/loss/elementwise.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <string>
#include <vector>

#include <pdp/core/functions.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/testing/loss_gradients.hpp>

#include "../examples/docs/log_cosh.hpp"
#include "catch.hpp"
#include "support.hpp"

namespace elementwise_loss_test {

namespace loss = pdp::loss;
using pdp::Index, pdp::LossSums, pdp::Matrix;
using pdp::cpu::Cpu;

namespace {

// [quartic]
constexpr pdp::loss::Elementwise quartic{[](auto y, auto t) { return (y - t) * (y - t) * (y - t) * (y - t); },
                                         [](auto y, auto t) { return 4 * (y - t) * (y - t) * (y - t); }};
// [quartic]

/// A loss whose value for padding, where output and target are 0, is not finite.
struct Ratio {
  template <class V>
  constexpr V operator()(const V& output, const V& target) const {
    return output / target;
  }
  template <class V>
  constexpr V derivative(const V&, const V& target) const {
    return 1 / target;
  }
};

static_assert(loss::Loss<std::remove_const_t<decltype(log_cosh)>, Cpu, float> && loss::Loss<loss::Elementwise<Ratio>, Cpu, double>);
static_assert(loss::Loss<std::remove_const_t<decltype(quartic)>, Cpu, float> && loss::IgnoresRows<std::remove_const_t<decltype(quartic)>>);
static_assert(loss::Loss<loss::L1, Cpu> && loss::Loss<loss::HuberLoss, Cpu, double> && loss::Loss<loss::BinaryCrossEntropy, Cpu, double>);
static_assert(std::same_as<loss::TargetOf<loss::HuberLoss, Cpu, double>, double>);

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Returns targets: normal numbers, or numbers from 0 to 1 for BinaryCrossEntropy.
template <class T, class L>
std::vector<T> targets_for(const L&, Index count) {
  auto targets = support::normal<T>(count, 2);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    T& each = targets[i];
    if constexpr (std::same_as<L, loss::BinaryCrossEntropy>) each = i % 3 == 0 ? T{1} : i % 3 == 1 ? T{} : std::abs(std::sin(each));
    if constexpr (std::same_as<L, loss::Elementwise<Ratio>>) each = std::abs(each) + 1;
  }
  return targets;
}

/// Compares the loss with the mean of value(output, target) in double, and its gradient with derivative(output, target).
template <class T, class L, class Value, class Derivative>
void check_values(const L& of, const Value& value, const Derivative& derivative) {
  for (const pdp::cpu::Simd registers : support::registers())
    for (const Index rows : {Index{0}, Index{1}, Index{5}})
      for (const Index cols : {Index{1}, Index{3}, Index{16}, Index{37}}) {
        auto outputs = support::normal<T>(rows * cols, 1);
        for (T& each : outputs) each *= 3;
        const auto targets = targets_for<T>(of, rows * cols);
        std::vector<T> gradient(outputs.size() + 1, T{9});
        const double scale = 0.125;
        LossSums sums{1, 2}, without{1, 2};
        const Matrix<const T> output{outputs.data(), rows, cols};
        const Cpu cpu{.registers = registers};
        of(cpu, output, std::span<const T>{targets}, &scale, Matrix<T>{gradient.data(), rows, cols}, &sums);
        of(cpu, output, std::span<const T>{targets}, &scale, Matrix<T>{}, &without);
        double total = 1;
        std::vector<double> wanted;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          const auto y = static_cast<double>(outputs[i]), t = static_cast<double>(targets[i]);
          total += value(y, t) / static_cast<double>(cols);
          wanted.push_back(scale * derivative(y, t) / static_cast<double>(cols));
        }
        wanted.push_back(9);
        CAPTURE(rows, cols, static_cast<int>(registers));
        const double tolerance = std::same_as<T, float> ? 2e-6 : 1e-13;
        CHECK_THAT(sums.loss, WithinRel(total, tolerance));
        CHECK(without.loss == sums.loss);
        CHECK(sums.correct == 2);
        CHECK(support::difference(gradient, wanted) < tolerance);
      }
}
template <class L, class Value, class Derivative>
void check_both(const L& of, const Value& value, const Derivative& derivative) {
  check_values<float>(of, value, derivative);
  check_values<double>(of, value, derivative);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class L>
void check_gradients(const L& of, Index outputs) {
  const auto targets = targets_for<float>(of, 5 * outputs);
  const auto doubles = pdp::testing::check_loss_gradients(of, outputs, std::span<const float>{targets});
  INFO(doubles.text());
  CHECK(doubles);
  const auto floats = pdp::testing::check_loss_gradients<float>(of, outputs, std::span<const float>{targets});
  INFO(floats.text());
  CHECK(floats);
}

}  // namespace

TEST_CASE("Elementwise losses have the values and gradients of their formulas in float and double", "[loss]") {
  check_both(
      log_cosh, [](double y, double t) { return std::log(std::cosh(y - t)); }, [](double y, double t) { return std::tanh(y - t); });
  check_both(
      quartic, [](double y, double t) { return std::pow(y - t, 4); }, [](double y, double t) { return 4 * std::pow(y - t, 3); });
  check_both(
      loss::Elementwise<Ratio>{}, [](double y, double t) { return y / t; }, [](double, double t) { return 1 / t; });
  check_both(
      loss::L1{}, [](double y, double t) { return std::abs(y - t); }, [](double y, double t) { return y > t   ? 1
                                                                                                      : y < t ? -1
                                                                                                              : 0; });
  for (const float delta : {0.25f, 1.0f, 3.0f}) {
    const auto d = static_cast<double>(delta);
    check_both(
        loss::HuberLoss{.delta = delta},
        [d](double y, double t) {
          const double e = std::abs(y - t);
          return e <= d ? e * e / 2 : d * (e - d / 2);
        },
        [d](double y, double t) { return std::clamp(y - t, -d, d); });
  }
  check_both(
      loss::BinaryCrossEntropy{}, [](double x, double t) { return std::log1p(std::exp(x)) - x * t; },
      [](double x, double t) { return sigmoid(x) - t; });
}

TEST_CASE("The gradients of elementwise losses equal central differences", "[loss][gradient]") {
  for (const Index outputs : {Index{1}, Index{7}, Index{19}}) {
    check_gradients(log_cosh, outputs);
    check_gradients(quartic, outputs);
    check_gradients(loss::L1{}, outputs);
    check_gradients(loss::HuberLoss{.delta = 0.7f}, outputs);
    check_gradients(loss::BinaryCrossEntropy{}, outputs);
  }
}

TEST_CASE("L1, HuberLoss and BinaryCrossEntropy give the values and gradients of PyTorch's formulas", "[loss]") {
  // by the formulas of torch.nn.functional.l1_loss(y, t) and the like, and their derivatives
  const std::vector<float> outputs{0.5f, -2, 3, 1}, targets{0, 1, 1, 1};
  const auto check = [&](const auto& of, double mean, const std::vector<double>& expected) {
    std::vector<float> gradient(4);
    const LossSums sums = support::sums_of(of, Matrix<const float>{outputs.data(), 2, 2}, std::span<const float>{targets}, 0.5f,
                                           Matrix<float>{gradient.data(), 2, 2});
    CHECK_THAT(sums.loss / 2, WithinRel(mean, 1e-6));
    CHECK(support::difference(gradient, expected) < 1e-6);
  };
  check(loss::L1{}, 1.375, {0.25, -0.25, 0.25, 0});
  check(loss::HuberLoss{}, 1.03125, {0.125, -0.25, 0.25, 0});
  check(loss::HuberLoss{.delta = 2.5f}, 1.625, {0.125, -0.625, 0.5, 0});
  check(loss::BinaryCrossEntropy{}, 0.86571296, {0.15561483, -0.22019927, -0.01185647, -0.06723535});
}

TEST_CASE("BinaryCrossEntropy is finite and keeps small values for outputs of any size", "[loss]") {
  const auto of = [](float output, float target) {
    float gradient = 0;
    const LossSums sums = support::sums_of(loss::BinaryCrossEntropy{}, Matrix<const float>{&output, 1, 1},
                                           std::span<const float>{&target, 1}, 1.0f, Matrix<float>{&gradient, 1, 1});
    return std::pair{sums.loss, gradient};
  };
  CHECK(of(1e4f, 1) == std::pair{0.0, 0.0f});
  CHECK(of(-1e4f, 0).first == 0);
  CHECK(of(-1e4f, 0).second < 1e-30f);
  CHECK(of(1e4f, 0) == std::pair{1e4, 1.0f});
  CHECK(of(-1e4f, 1) == std::pair{1e4, -1.0f});
  CHECK_THAT(of(30, 1).first, WithinRel(std::exp(-30.0), 1e-6));
  CHECK_THAT(of(-30, 0).first, WithinRel(std::exp(-30.0), 1e-6));
  CHECK(std::isnan(of(nan, 1).first));
}

TEST_CASE("BinaryCrossEntropy rejects targets outside of 0 to 1", "[loss][bad input]") {
  const auto message = [](const loss::BinaryCrossEntropy& of, float wrong) {
    const std::vector<float> targets{0, 1, 0.5f, 1, 0, wrong};
    const auto found = support::message_of<pdp::ConfigError>([&] { of.check(std::span<const float>{targets}, 2); });
    const std::vector<double> doubles(targets.begin(), targets.end());
    CHECK(support::message_of<pdp::ConfigError>([&] { of.check(std::span<const double>{doubles}, 2); }) == found);
    const std::vector<float> outputs(6);
    CHECK(support::message_of<pdp::ConfigError>([&] {
            support::sums_of(of, Matrix<const float>{outputs.data(), 3, 2}, std::span<const float>{targets}, 1.0f, Matrix<float>{});
          }) == found);
    return found.value_or("");
  };
  CHECK(message({}, 1.5f) == "row 2 of a batch has the target 1.5 for output 1; BinaryCrossEntropy takes targets from 0 to 1");
  CHECK_THAT(message({}, -0.25f), Contains("the target -0.25"));
  CHECK_THAT(message({}, std::numeric_limits<float>::infinity()), Contains("the target inf"));
  CHECK_THAT(message({}, nan), Contains(", and NaN with .ignore_nan = true"));
  CHECK(message({.ignore_nan = true}, nan).empty());
  CHECK_THAT(message({.ignore_nan = true}, 2), Contains("the target 2"));
  CHECK(message({}, 0).empty());
}

TEST_CASE("HuberLoss rejects a delta that is not above 0", "[loss][bad input]") {
  const std::vector<float> outputs{1}, targets{0};
  for (const float delta : {0.0f, -1.0f, nan})
    CHECK_THAT(support::message_of<pdp::ConfigError>([&] {
                 support::sums_of(loss::HuberLoss{.delta = delta}, Matrix<const float>{outputs.data(), 1, 1},
                                  std::span<const float>{targets}, 1.0f, Matrix<float>{});
               }).value_or(""),
               Contains("the delta of HuberLoss is ") && Contains("expected a number above 0"));
}

TEST_CASE("Elementwise losses with ignore_nan leave out rows with a target that is NaN", "[loss]") {
  const std::vector<float> outputs{1, 2, 3, 4, 5, 6}, targets{0, 1, nan, 1, 1, 0};
  const auto check = [&](const auto& counting, const auto& ignoring, double total) {
    std::vector<float> gradient(6, 9.0f);
    const Matrix<const float> y{outputs.data(), 3, 2};
    const auto compute = [&](const auto& of) {
      return support::sums_of(of, y, std::span<const float>{targets}, 0.5f, Matrix<float>{gradient.data(), 3, 2}).loss;
    };
    CHECK_THAT(compute(ignoring), WithinRel(total, 1e-6));
    CHECK((gradient[2] == 0 && gradient[3] == 0));
    CHECK((gradient[0] != 0 && gradient[5] != 0));
    CHECK(loss::counted_rows(ignoring, std::span<const float>{targets}, 3) == 2);
    CHECK(loss::counted_rows(counting, std::span<const float>{targets}, 3) == 3);
    CHECK(pdp::testing::check_loss_gradients(ignoring, 2, std::span<const float>{targets}).text().empty());
    if constexpr (requires { counting.check(std::span<const float>{}, Index{}); })
      CHECK_THROWS_AS(compute(counting), pdp::ConfigError);
    else
      CHECK(std::isnan(compute(counting)));
  };
  check(loss::L1{}, loss::L1{.ignore_nan = true}, (1 + 1 + 4 + 6) / 2.0);
  check(loss::HuberLoss{}, loss::HuberLoss{.ignore_nan = true}, (0.5 + 0.5 + 3.5 + 5.5) / 2);
  check(loss::Elementwise<LogCosh>{}, loss::Elementwise{LogCosh{}, {.ignore_nan = true}},
        (2 * std::log(std::cosh(1.0)) + std::log(std::cosh(4.0)) + std::log(std::cosh(6.0))) / 2);
  const auto bce = [](double x, double t) { return std::log1p(std::exp(x)) - x * t; };
  check(loss::BinaryCrossEntropy{}, loss::BinaryCrossEntropy{.ignore_nan = true}, (bce(1, 0) + bce(2, 1) + bce(5, 1) + bce(6, 0)) / 2);
}

TEST_CASE("Elementwise losses take options with one function and with two lambdas", "[loss]") {
  constexpr auto value = [](auto y, auto t) { return y - t; };
  constexpr auto slope = [](auto y, auto) { return 0 * y + 1; };
  STATIC_REQUIRE(loss::Elementwise{value, slope, {.ignore_nan = true}}.ignores_rows());
  STATIC_REQUIRE_FALSE(loss::Elementwise{value, slope}.ignores_rows());
  STATIC_REQUIRE(loss::Elementwise{LogCosh{}, {.ignore_nan = true}}.ignores_rows());
  STATIC_REQUIRE_FALSE(loss::Elementwise{LogCosh{}}.ignores_rows());
  STATIC_REQUIRE(loss::L1{}.target_elements(7) == 7);
  STATIC_REQUIRE_FALSE(loss::HuberLoss::has_classes);
}

}  // namespace elementwise_loss_test
