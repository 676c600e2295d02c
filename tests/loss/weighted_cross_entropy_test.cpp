#include <pdp/loss/weighted_cross_entropy.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <pdp/core/label.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/testing/loss_gradients.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace weighted_cross_entropy_test {

namespace loss = pdp::loss;
using pdp::Index;
using pdp::LossSums;
using pdp::Matrix;

namespace {

constexpr std::array weights{0.5f, 2.0f, 0.0f, 3.0f, 1.0f, 0.25f};
using Weighted = loss::WeightedCrossEntropy<6>;

/// Computes a loss once, by the object that computes on a CPU.
template <class Loss, class T>
LossSums sums_of(const Loss& of, Matrix<const T> output, std::span<const std::int32_t> classes, double scale, Matrix<T> gradient) {
  LossSums sums;
  loss::compute(of, pdp::cpu::Cpu{}, output, classes, &scale, gradient, &sums, pdp::Pass{});
  return sums;
}

/// The loss of a row by its definition: the cross-entropy against (1 - smoothing) one_hot + smoothing / classes, multiplied by weights.
double defined(std::span<const double> output, std::int32_t label, double smoothing) {
  double total = 0, sum = 0;
  for (const double each : output) total += std::exp(each);
  for (std::size_t c = 0; c < output.size(); ++c) {
    const double wanted = (c == static_cast<std::size_t>(label) ? 1 - smoothing : 0) + smoothing / static_cast<double>(output.size());
    sum -= wanted * static_cast<double>(weights[c]) * (output[c] - std::log(total));
  }
  return sum;
}

}  // namespace

TEST_CASE("WeightedCrossEntropy is the sum that its definition says", "[loss]") {
  constexpr Index rows = 9, cols = 6;
  const double smoothing = GENERATE(0.0, 0.3);
  const auto outputs = support::normal<double>(rows * cols, 3);
  const std::vector<std::int32_t> classes{0, 1, 2, 3, 4, 5, -100, 1, 3};
  double expected = 0;
  for (std::size_t row = 0; row < classes.size(); ++row)
    if (classes[row] >= 0) expected += defined(std::span{outputs}.subspan(row * cols, cols), classes[row], smoothing);
  const Weighted of{.weights = weights, .ignore_index = -100, .label_smoothing = smoothing};
  const LossSums sums = sums_of(of, Matrix<const double>{outputs.data(), rows, cols}, classes, 1, Matrix<double>{});
  CHECK(sums.loss == Approx(expected).epsilon(1e-12));
}

TEST_CASE("The mean of WeightedCrossEntropy and its gradient are those of PyTorch", "[loss]") {
  // torch.nn.functional.cross_entropy(x, classes, weight=w, ignore_index=-100, label_smoothing=0.1), and x.grad
  const std::vector<float> outputs{1, 2, 0, -1, 0.5f, 3, 0, 0, 0, 2, 1, -2};
  const std::vector<std::int32_t> classes{2, 0, -100, 1};
  const loss::WeightedCrossEntropy<3> of{.weights = {0.5f, 2, 1}, .ignore_index = -100, .label_smoothing = 0.1};
  const double divisor = loss::divisor_of_rows(of, std::span<const std::int32_t>{classes}, 4);
  CHECK(divisor == 3.5);
  std::vector<float> gradient(12, 9.0f);
  const LossSums sums = sums_of(of, Matrix<const float>{outputs.data(), 4, 3}, classes, 1 / divisor, Matrix<float>{gradient.data(), 4, 3});
  CHECK(sums.loss / divisor == Approx(2.0031981).epsilon(1e-6));
  CHECK(sums.correct == 0);
  CHECK(support::difference(gradient, std::vector<double>{0.06632589, 0.17418904, -0.24051493, -0.13063851, -0.00697024, 0.13760875, 0, 0,
                                                          0, 0.39029003, -0.38800185, -0.00228818}) < 1e-6);
}

TEST_CASE("WeightedCrossEntropy with equal weights of 1 equals CrossEntropy", "[loss]") {
  constexpr Index rows = 7, cols = 6;
  const double smoothing = GENERATE(0.0, 0.2);
  const auto outputs = support::normal<double>(rows * cols, 4);
  const std::vector<std::int32_t> classes{0, 5, 2, 3, 4, 5, 1};
  std::vector<double> one(outputs.size()), other(outputs.size());
  const Matrix<const double> x{outputs.data(), rows, cols};
  const LossSums weighted = sums_of(Weighted{.weights = {1, 1, 1, 1, 1, 1}, .label_smoothing = smoothing}, x, classes, 0.5,
                                    Matrix<double>{one.data(), rows, cols});
  const LossSums plain =
      sums_of(loss::CrossEntropy{.label_smoothing = smoothing}, x, classes, 0.5, Matrix<double>{other.data(), rows, cols});
  CHECK(weighted.loss == Approx(plain.loss).epsilon(1e-14));
  CHECK(weighted.correct == plain.correct);
  CHECK(support::difference(one, other) < 1e-14);
}

TEST_CASE("The gradient of WeightedCrossEntropy agrees with finite differences", "[loss]") {
  for (const double smoothing : {0.0, 0.2}) {
    const Weighted of{.weights = weights, .ignore_index = 4, .label_smoothing = smoothing};
    for (const Index rows : {1, 2, 5, 13}) {
      const auto in_double = pdp::testing::check_loss_gradients(of, 6, {.rows = rows});
      CHECK(static_cast<bool>(in_double));
      if (!in_double) WARN(in_double.text());
      const auto in_float = pdp::testing::check_loss_gradients<float>(of, 6, {.rows = rows});
      CHECK(static_cast<bool>(in_float));
      if (!in_float) WARN(in_float.text());
    }
  }
}

TEST_CASE("WeightedCrossEntropy of divided columns matches that of all columns", "[loss][tensor]") {
  constexpr Index rows = 8, own = 3, cols = 2 * own;
  const pdp::cpu::Cpu cpu;
  const Weighted of{.weights = weights, .ignore_index = -100, .label_smoothing = GENERATE(0.0, 0.3)};
  const auto outputs = support::normal<double>(rows * cols, 5);
  const std::vector<std::int32_t> classes{0, -100, 4, 5, 2, 1, 3, 3};
  std::vector<double> whole(outputs.size());
  const double scale = 0.25;
  const LossSums expected =
      sums_of(of, Matrix<const double>{outputs.data(), rows, cols}, classes, scale, Matrix<double>{whole.data(), rows, cols});
  const auto there = of.on(cpu);
  std::vector<double> halves[2], parts(pdp::as_size(2 * rows * Weighted::part_numbers));
  for (Index part = 0; part < 2; ++part) {
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < own; ++c) halves[part].push_back(outputs[pdp::as_size(r * cols + part * own + c)]);
    there.part(cpu, Matrix<const double>{halves[part].data(), rows, own}, std::span<const std::int32_t>{classes}, part * own, cols,
               Matrix<double>{parts.data() + part * rows * Weighted::part_numbers, rows, Weighted::part_numbers});
  }
  for (Index part = 0; part < 2; ++part) {
    std::vector<double> gradient(pdp::as_size(rows * own), 9.0), wanted;
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < own; ++c) wanted.push_back(whole[pdp::as_size(r * cols + part * own + c)]);
    LossSums sums;
    there.join(cpu, Matrix<const double>{halves[part].data(), rows, own}, std::span<const std::int32_t>{classes}, part * own, cols,
               Matrix<const double>{parts.data(), 2 * rows, Weighted::part_numbers}, &scale, Matrix<double>{gradient.data(), rows, own},
               &sums);
    CHECK(sums.loss == Approx(expected.loss).epsilon(1e-13));
    CHECK(sums.correct == expected.correct);
    CHECK(support::difference(gradient, wanted) < 1e-13);
  }
}

TEST_CASE("weight_of_rows adds up the weights of the rows that count", "[loss]") {
  const std::vector<std::int32_t> classes{1, 1, 3, -100, 2, 9};
  const std::span<const std::int32_t> all{classes};
  const Weighted of{.weights = weights, .ignore_index = -100};
  CHECK(loss::weight_of_rows(of, all, 6) == 7);  // class 9, which is an error, has no weight
  CHECK(loss::divisor_of_rows(of, all, 6) == 7);
  CHECK(loss::weight_of_rows(of, all.subspan(4, 1), 1) == 0);
  CHECK(loss::divisor_of_rows(of, all.subspan(4, 1), 1) == 1);
  CHECK(loss::weight_of_rows(of, all.first(0), 0) == 0);
  CHECK(loss::weight_of_rows(Weighted{.weights = weights, .ignore_index = 3}, all, 6) == 4);
  CHECK(loss::weight_of_rows(loss::CrossEntropy{}, all, 6) == 0);
  CHECK(loss::divisor_of_rows(loss::CrossEntropy{.ignore_index = -100}, all, 6) == 5);
  STATIC_REQUIRE_FALSE(loss::WeighsRows<loss::CrossEntropy>);
}

TEST_CASE("WeightedCrossEntropy rejects invalid weights, and a model with other outputs", "[loss][bad input]") {
  using Two = loss::WeightedCrossEntropy<2>;
  CHECK_THROWS_WITH((Two{.weights = {1, -1}}.check_outputs(2)), "class 1 has the weight -1; expected a finite number of at least 0");
  CHECK_THROWS_WITH((Two{.weights = {std::numeric_limits<float>::quiet_NaN(), 1}}.check_outputs(2)),
                    "class 0 has the weight nan; expected a finite number of at least 0");
  CHECK_THROWS_WITH((Two{.weights = {std::numeric_limits<float>::infinity(), 1}}.check_outputs(2)),
                    "class 0 has the weight inf; expected a finite number of at least 0");
  CHECK_THROWS_WITH((Two{}.check_outputs(2)), "all 2 classes have the weight 0, so no row would count");
  CHECK_THROWS_WITH((Two{.weights = {1, 1}}.check_outputs(3)), "the loss has weights for 2 classes, but the model has 3 outputs");
  const std::vector<float> outputs{1, 2, 3};
  const std::vector<std::int32_t> classes{0};
  const Matrix<const float> three{outputs.data(), 1, 3}, two{outputs.data(), 1, 2};
  CHECK_THROWS_AS(sums_of(Two{.weights = {1, 1}}, three, classes, 1, Matrix<float>{}), pdp::ConfigError);
  CHECK_THROWS_AS(sums_of(Two{.weights = {1, 1}, .label_smoothing = 1}, two, classes, 1, Matrix<float>{}), pdp::ConfigError);
  const std::vector<std::int32_t> wrong{2};
  CHECK_THROWS_AS(sums_of(Two{.weights = {1, 1}}, two, wrong, 1, Matrix<float>{}), pdp::LabelError);
}

}  // namespace weighted_cross_entropy_test
