#include <pdp/loss/counted_rows.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/testing/loss_gradients.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace ignored_rows_test {

namespace loss = pdp::loss;
using pdp::Index;
using pdp::LossSums;
using pdp::Matrix;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// A loss of one's own that counts rows with positive targets. `adds`: for other rows, adds to the sum; `steers`: for other rows, leaves a
/// gradient.
struct Positive {
  using Target = float;
  static constexpr bool has_classes = false;
  bool adds = false, steers = false;

  [[nodiscard]] static Index target_elements(Index) { return 1; }
  [[nodiscard]] static bool counts(std::span<const float> target) { return target.front() > 0; }
  template <class T>
  void operator()(const pdp::cpu::Cpu&, Matrix<const T> output, std::span<const float> targets, const double* scale, Matrix<T> gradient,
                  LossSums* sums) const {
    for (Index r = 0; r < output.rows; ++r)
      for (Index c = 0; c < output.cols; ++c) {
        const bool count = targets[pdp::as_size(r)] > 0;
        const T x = output.row(r)[c];
        if (count) sums->loss += static_cast<double>(x * x / 2);
        if (!count && adds) sums->loss += 1;
        if (gradient.data != nullptr) gradient.row(r)[c] = count ? static_cast<T>(*scale) * x : static_cast<T>(steers ? 1e-12 : 0);
      }
  }
};

}  // namespace

TEST_CASE("counted_rows counts the rows that a loss does not ignore", "[loss]") {
  const std::vector<std::int32_t> classes{2, -100, 0, 2, -100};
  const std::span<const std::int32_t> all{classes};
  STATIC_REQUIRE(loss::IgnoresRows<loss::CrossEntropy>);
  CHECK_FALSE(loss::may_ignore_rows(loss::CrossEntropy{}));
  CHECK(loss::counted_rows(loss::CrossEntropy{}, all, 5) == 5);
  CHECK(loss::may_ignore_rows(loss::CrossEntropy{.ignore_index = -100}));
  CHECK(loss::counted_rows(loss::CrossEntropy{.ignore_index = -100}, all, 5) == 3);
  CHECK(loss::counted_rows(loss::CrossEntropy{.ignore_index = 2}, all, 5) == 3);
  CHECK(loss::counted_rows(loss::CrossEntropy{.ignore_index = 2}, all.first(0), 0) == 0);
  const std::vector<float> targets{1, not_a_number, 2, 3, not_a_number, not_a_number};
  CHECK(loss::counted_rows(loss::MeanSquaredError{}, std::span<const float>{targets}, 3) == 3);
  CHECK(loss::counted_rows(loss::MeanSquaredError{.ignore_nan = true}, std::span<const float>{targets}, 3) == 1);
  CHECK(loss::may_ignore_rows(Positive{}));
}

TEST_CASE("CrossEntropy with ignore_index gives the mean and the gradient of PyTorch", "[loss]") {
  // torch.nn.functional.cross_entropy(x, classes, ignore_index=-100), and x.grad
  const std::vector<float> outputs{1, 2, not_a_number, 0, 3, 1};
  const std::vector<std::int32_t> classes{0, -100, 1};
  std::vector<float> gradient(6, 9.0f);
  const LossSums sums = support::sums_of(loss::CrossEntropy{.ignore_index = -100}, Matrix<const float>{outputs.data(), 3, 2},
                                         std::span{classes}, 0.5f, Matrix<float>{gradient.data(), 3, 2});
  CHECK(sums.loss / 2 == Approx(1.7200948).epsilon(1e-6));
  CHECK(sums.correct == 0);
  CHECK(support::difference(gradient, std::vector<double>{-0.36552929, 0.36552929, 0, 0, 0.44039854, -0.44039854}) < 1e-6);
  CHECK((gradient[2] == 0 && gradient[3] == 0));
}

TEST_CASE("CrossEntropy may ignore a class that has an output", "[loss]") {
  const std::vector<float> outputs{3, 1, 0, 5};
  const std::vector<std::int32_t> classes{0, 1};
  const auto sums = [&](const loss::CrossEntropy& of) {
    return support::sums_of(of, Matrix<const float>{outputs.data(), 2, 2}, std::span{classes}, 1.0f, Matrix<float>{});
  };
  CHECK(sums({}).correct == 2);
  CHECK(sums({.ignore_index = 0}).correct == 1);
  CHECK(sums({.ignore_index = 0}).loss == Approx(std::log1p(std::exp(-5.0))).epsilon(1e-5));
}

TEST_CASE("CrossEntropy rejects classes without an output that it does not ignore", "[loss]") {
  const std::vector<float> outputs{3, 1};
  const std::vector<std::int32_t> classes{-100};
  const auto take = [&](const loss::CrossEntropy& of) {
    of.check(classes, 2);
    return support::sums_of(of, Matrix<const float>{outputs.data(), 1, 2}, std::span{classes}, 1.0f, Matrix<float>{});
  };
  CHECK_THROWS_AS(take({}), pdp::LabelError);
  CHECK_THROWS_AS(take({.ignore_index = -1}), pdp::LabelError);
  CHECK(take({.ignore_index = -100}).loss == 0);
}

TEST_CASE("CrossEntropy of divided columns ignores the same rows as that of all columns", "[loss][tensor]") {
  constexpr Index rows = 7, own = 3, cols = 2 * own;
  const std::int32_t ignored = GENERATE(as<std::int32_t>{}, -100, 0, 4);
  const loss::CrossEntropy of{.ignore_index = ignored};
  auto outputs = support::normal(rows * cols, 5);
  const std::vector<std::int32_t> classes{0, ignored, 4, 5, ignored, 1, ignored};
  for (Index c = 0; c < cols; ++c) outputs[pdp::as_size(4 * cols + c)] = not_a_number;
  std::vector<float> whole(outputs.size());
  const LossSums expected = support::sums_of(of, Matrix<const float>{outputs.data(), rows, cols}, std::span{classes}, 0.25f,
                                             Matrix<float>{whole.data(), rows, cols});
  CHECK(std::isfinite(expected.loss));
  std::vector<float> halves[2], parts(pdp::as_size(2 * rows * 4));
  const double scale = 0.25;
  for (Index part = 0; part < 2; ++part) {
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < own; ++c) halves[part].push_back(outputs[pdp::as_size(r * cols + part * own + c)]);
    of.part(pdp::cpu::Cpu{}, Matrix<const float>{halves[part].data(), rows, own}, std::span<const std::int32_t>{classes}, part * own, cols,
            Matrix<float>{parts.data() + part * rows * 4, rows, 4});
  }
  for (Index part = 0; part < 2; ++part) {
    std::vector<float> gradient(pdp::as_size(rows * own), 9.0f);
    LossSums sums;
    of.join(pdp::cpu::Cpu{}, Matrix<const float>{halves[part].data(), rows, own}, std::span<const std::int32_t>{classes}, part * own, cols,
            Matrix<const float>{parts.data(), 2 * rows, 4}, &scale, Matrix<float>{gradient.data(), rows, own}, &sums);
    CHECK(sums.loss == Approx(expected.loss).epsilon(1e-6));
    CHECK(sums.correct == expected.correct);
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < own; ++c)
        CHECK(gradient[pdp::as_size(r * own + c)] == Approx(whole[pdp::as_size(r * cols + part * own + c)]).margin(1e-6));
  }
}

TEST_CASE("MeanSquaredError with ignore_nan leaves out rows with a target that is NaN", "[loss]") {
  const std::vector<float> outputs{1, 2, 3, 4, 5, 6}, targets{0, 2, not_a_number, 4, 5, 8};
  std::vector<float> gradient(6, 9.0f);
  const Matrix<float> to{gradient.data(), 3, 2};
  const Matrix<const float> y{outputs.data(), 3, 2};
  const LossSums sums = support::sums_of(loss::MeanSquaredError{.ignore_nan = true}, y, std::span<const float>{targets}, 0.5f, to);
  CHECK(sums.loss == Approx(0.5 + 2));
  CHECK(gradient == std::vector<float>{0.5f, 0, 0, 0, 0, -1});
  CHECK(std::isnan(support::sums_of(loss::MeanSquaredError{}, y, std::span<const float>{targets}, 0.5f, to).loss));
}

TEST_CASE("check_loss_gradients checks that ignored rows add nothing and have a gradient of zeros", "[loss][testing]") {
  using pdp::testing::check_loss_gradients;
  const std::vector<std::int32_t> classes{2, -1, 0, -1, 1};
  CHECK(check_loss_gradients(loss::CrossEntropy{.ignore_index = -1}, 3, std::span<const std::int32_t>{classes}).text().empty());
  CHECK(check_loss_gradients(loss::CrossEntropy{.ignore_index = 1}, 4).text().empty());
  const std::vector<float> targets{1, -1, 2, 0.5f};
  CHECK(check_loss_gradients(loss::MeanSquaredError{.ignore_nan = true}, 2).text().empty());
  const auto told = [&](const Positive& of) { return check_loss_gradients(of, 2, std::span<const float>{targets}).text(); };
  CHECK(told({}).empty());
  CHECK(told({.adds = true}) ==
        "the loss gives 2, 0 correct rows and a gradient of zeros for row 1, which does not count; expected 0, 0 and a gradient of zeros");
  CHECK_THAT(told({.steers = true}), Contains("a gradient that is not zero for row 1, which does not count"));
}

}  // namespace ignored_rows_test
