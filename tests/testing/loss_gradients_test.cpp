#include <pdp/testing/loss_gradients.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/mean_squared_error.hpp>

#include "catch.hpp"

namespace testing = pdp::testing;
using pdp::Index;
using pdp::Matrix;

namespace loss_gradients_test {

namespace {

enum class Fault { none, gradient, scale, overwrites, evaluation, rows, no_rows, overrun, infinite, correct };

/// The sum of the squares of a row, times its target / 2.
struct Weighted {
  using Target = float;
  static constexpr bool has_classes = false;
  Fault fault = Fault::none;

  [[nodiscard]] Index target_elements(Index) const { return 1; }
  template <class T>
  void operator()(const pdp::cpu::Cpu&, Matrix<const T> output, std::span<const float> targets, const double* scale, Matrix<T> gradient,
                  pdp::LossSums* sums) const {
    if (fault == Fault::overwrites) *sums = {};
    for (Index r = 0; r < output.rows; ++r) {
      const T weight = static_cast<T>(targets[pdp::as_size(fault == Fault::rows ? 0 : r)]);
      for (Index c = 0; c < output.cols; ++c) {
        const T value = output.row(r)[c];
        sums->loss += static_cast<double>(weight * value * value / 2);
        if (gradient.data != nullptr)
          gradient.row(r)[c] = static_cast<T>(fault == Fault::scale ? 1 : *scale) * weight * (fault == Fault::gradient ? 2 : 1) * value;
      }
    }
    if (fault == Fault::evaluation && gradient.data == nullptr) sums->loss += 1;
    if (fault == Fault::no_rows && output.rows == 0) sums->loss += 1;
    if (fault == Fault::overrun && gradient.data != nullptr) gradient.data[output.size()] = 0;
    if (fault == Fault::infinite) sums->loss /= 0.0;
    if (fault == Fault::correct) sums->correct += static_cast<double>(output.rows);
  }
};

std::string told(Fault fault) { return testing::check_loss_gradients(Weighted{fault}, 4).text(); }

}  // namespace

TEST_CASE("check_loss_gradients accepts the losses of pdp and a correct one", "[testing][gradient]") {
  const Index outputs = GENERATE(as<Index>{}, 1, 7), rows = GENERATE(as<Index>{}, 1, 5);
  CHECK(testing::check_loss_gradients(pdp::loss::CrossEntropy{}, outputs, {.rows = rows}).text().empty());
  CHECK(testing::check_loss_gradients<float>(pdp::loss::CrossEntropy{}, outputs, {.rows = rows}).text().empty());
  CHECK(testing::check_loss_gradients(pdp::loss::MeanSquaredError{}, outputs, {.rows = rows, .seed = 2}).text().empty());
  CHECK(testing::check_loss_gradients(Weighted{}, outputs, {.rows = rows}).text().empty());
  CHECK(testing::check_loss_gradients<float>(Weighted{}, outputs, {.rows = rows}).text().empty());
}

TEST_CASE("check_loss_gradients takes the caller's targets, and rejects a part of a row", "[testing][gradient]") {
  const std::vector<std::int32_t> classes{2, 0, 2};
  CHECK(testing::check_loss_gradients(pdp::loss::CrossEntropy{}, 3, std::span<const std::int32_t>{classes}).text().empty());
  CHECK_THROWS_AS(testing::check_loss_gradients(pdp::loss::CrossEntropy{}, 2, std::span<const std::int32_t>{classes}), pdp::LabelError);
  const std::vector<float> five(5);
  CHECK_THROWS_WITH(testing::check_loss_gradients(pdp::loss::MeanSquaredError{}, 3, std::span<const float>{five}),
                    "a check of a loss has 5 targets; expected a multiple of 3, the target of a row");
}

TEST_CASE("check_loss_gradients names the element or sum, the value found and the value expected", "[testing][gradient]") {
  for (const Fault fault : {Fault::gradient, Fault::scale})
    CHECK_THAT(told(fault), StartsWith("the loss gives ") && Contains(" as the gradient of element 0 of row 0 of the outputs; expected ") &&
                                EndsWith(", the central difference of *scale (0.25) times the sum"));
  CHECK_THAT(told(Fault::overrun), StartsWith("the loss writes outside of the gradient"));
  CHECK_THAT(told(Fault::infinite), EndsWith(" as the sum of its rows; expected a finite value"));
  CHECK_THAT(told(Fault::overwrites), Contains(" for sums that were not zero before; expected ") && EndsWith("as it adds to them"));
  CHECK_THAT(told(Fault::evaluation), StartsWith("without a gradient the loss gives a loss of ") && EndsWith(", as with one"));
  CHECK_THAT(told(Fault::rows), EndsWith(", the sum over its rows one by one"));
  CHECK(told(Fault::no_rows) == "the loss gives a loss of 1 and 0 correct rows for 0 rows; expected 0");
  CHECK_THAT(told(Fault::correct), EndsWith(" and 3 correct rows; expected at most 0, as it has no classes"));
}

}  // namespace loss_gradients_test
