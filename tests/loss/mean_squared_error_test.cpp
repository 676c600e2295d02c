#include <pdp/loss/mean_squared_error.hpp>

#include <vector>

#include <pdp/cpu/cpu.hpp>

#include "catch.hpp"
#include "support.hpp"

using pdp::Index;
using pdp::LossSums;
using pdp::Matrix;
using pdp::cpu::Cpu;
using pdp::loss::MeanSquaredError;

static_assert(pdp::loss::Loss<MeanSquaredError, Cpu, float> && pdp::loss::Loss<MeanSquaredError, Cpu, double>);
static_assert(std::same_as<pdp::loss::TargetOf<MeanSquaredError, Cpu, double>, double>);

TEST_CASE("MeanSquaredError takes a target as wide as the output and has no accuracy", "[loss]") {
  static_assert(std::same_as<MeanSquaredError::Target, float> && !MeanSquaredError::has_classes);
  static_assert(MeanSquaredError{}.target_elements(10) == 10);
  SUCCEED();
}

TEST_CASE("MeanSquaredError averages over the outputs of a sample and sums over the samples", "[loss]") {
  const std::vector<float> outputs{1, 2, 3, 4, 5, 6}, targets{1, 0, 0, 4, 5, 9};
  std::vector<float> gradient(6);
  const LossSums sums = support::sums_of(MeanSquaredError{}, Matrix<const float>{outputs.data(), 2, 3}, std::span<const float>{targets},
                                         0.5f, Matrix<float>{gradient.data(), 2, 3});
  CHECK(sums.loss == Approx((4.0 + 9.0) / 3 + 9.0 / 3));
  CHECK(sums.correct == 0);
  CHECK(support::difference(gradient, std::vector<double>{0, 2.0 / 3, 1, 0, 0, -1}) < 1e-6);
}

TEST_CASE("The gradient of MeanSquaredError equals central differences times the scale", "[loss][gradient]") {
  const Index rows = GENERATE(as<Index>{}, 1, 5), cols = GENERATE(as<Index>{}, 1, 3, 10);
  const double scale = GENERATE(1.0, 0.125);
  auto outputs = support::normal<double>(rows * cols, 1);
  const auto targets = support::normal<double>(rows * cols, 2);
  std::vector<double> gradient(outputs.size());
  const auto loss = [&](Matrix<double> to) {
    return support::sums_of(MeanSquaredError{}, Matrix<const double>{outputs.data(), rows, cols}, std::span<const double>{targets}, scale,
                            to)
        .loss;
  };
  loss({gradient.data(), rows, cols});

  constexpr double h = 1e-5;
  std::vector<double> expected;
  for (double& output : outputs) {
    const double kept = output;
    output = kept + h;
    const double above = loss({});
    output = kept - h;
    const double below = loss({});
    output = kept;
    expected.push_back(scale * (above - below) / (2 * h));
  }
  CHECK(support::difference(gradient, expected) < 1e-9);
}

TEST_CASE("MeanSquaredError of the shares of a batch adds up to that of the whole", "[loss]") {
  constexpr Index rows = 11, cols = 5;
  const auto outputs = support::normal(rows * cols, 2), targets = support::normal(rows * cols, 3);
  std::vector<float> whole_gradient(outputs.size()), gradient(outputs.size());
  const auto part = [&](Index first, Index count, std::vector<float>& to) {
    return support::sums_of(MeanSquaredError{}, Matrix<const float>{outputs.data() + first * cols, count, cols},
                            std::span{targets}.subspan(static_cast<std::size_t>(first * cols), static_cast<std::size_t>(count * cols)),
                            1.0f / rows, Matrix<float>{to.data() + first * cols, count, cols})
        .loss;
  };
  const double whole = part(0, rows, whole_gradient);
  CHECK(part(0, 4, gradient) + part(4, 0, gradient) + part(4, 7, gradient) == Approx(whole).epsilon(1e-12));
  CHECK(gradient == whole_gradient);
}
