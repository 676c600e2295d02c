#include <pdp/core/error.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/testing/gradients.hpp>
#include <pdp/testing/values.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "catch.hpp"

namespace dropout_test {

namespace nn = pdp::nn;
using pdp::Index, pdp::Matrix;
using pdp::cpu::Cpu;

namespace {

const pdp::StepNumbers numbers{.info = {.number = 4}};
constexpr pdp::Pass in_step{.is_training = true, .key = pdp::random::make_key(1, "dropout")};

/// Returns y for rows of ones, `cols` in each, in the pass with this first row and column.
std::vector<float> dropped(const nn::Dropout& layer, Index rows, Index cols, Index first_row = 0, Index first_column = 0, int threads = 1) {
  std::vector<float> y(static_cast<std::size_t>(rows * cols), 1.0f);
  pdp::Pass pass = in_step;
  pass.numbers = &numbers;
  pass.first_row = first_row;
  if (first_column > 0) pass.columns = {first_column, cols, first_column + cols};
  const Matrix<float> in_place{y.data(), rows, cols};
  layer.forward(Cpu{.threads = threads}, nn::State<float>{.pass = pass}, Matrix<const float>{in_place}, in_place,
                static_cast<float*>(nullptr));
  return y;
}

}  // namespace

TEST_CASE("Dropout keeps a part of the values, and scales them so that the mean stays", "[nn][dropout]") {
  const auto y = dropped(nn::Dropout{0.25f}, 100, 101);
  double zeros = 0, sum = 0;
  for (const float value : y) {
    CHECK((value == 0 || value == Approx(4.0 / 3)));
    zeros += value == 0;
    sum += static_cast<double>(value);
  }
  CHECK(zeros / 10100 == Approx(0.25).margin(0.02));
  CHECK(sum / 10100 == Approx(1).margin(0.03));
  CHECK(dropped(nn::Dropout{0}, 3, 5) == std::vector<float>(15, 1.0f));
}

TEST_CASE("Dropout drops the same values in any division into rows, columns and threads", "[nn][dropout]") {
  const nn::Dropout layer{0.5f};
  const Index rows = 6, cols = 11;
  const auto whole = dropped(layer, rows, cols);
  for (Index row = 0; row < rows; ++row)
    for (Index begin : {Index{0}, Index{3}, Index{10}}) {
      const auto part = dropped(layer, 1, cols - begin, row, begin);
      CHECK(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(row * cols + begin)));
    }
  pdp::Pass pass = in_step;  // of a rank with columns 3 to 5 of each vector of 11
  pass.numbers = &numbers;
  pass.columns = {3, 3, 11};
  const auto three = dropped(layer, 2, 33);
  std::vector<float> y(2 * 9, 1.0f);
  const Matrix<float> in_place{y.data(), 2, 9};
  layer.forward(Cpu{}, nn::State<float>{.pass = pass}, Matrix<const float>{in_place}, in_place, static_cast<float*>(nullptr));
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == three[i / 9 * 33 + i % 9 / 3 * 11 + 3 + i % 3]);
  CHECK(dropped(layer, 400, 333, 2, 1, 3) == dropped(layer, 400, 333, 2, 1));
}

TEST_CASE("Dropout has the gradient of central differences, and is the identity outside of steps", "[nn][dropout]") {
  const auto found = pdp::testing::check_gradients(nn::Sequential{nn::Linear{5, 9}, nn::Dropout{0.4f}, nn::Linear{9, 2}}, pdp::Shape{5});
  INFO(found.text());
  CHECK(found);
  const auto x = pdp::testing::normal(3 * 7, 1);
  std::vector<float> y(x.size());
  nn::Dropout{0.9f}.forward(Cpu{}, nn::State<float>{}, Matrix<const float>{x.data(), 3, 7}, Matrix<float>{y.data(), 3, 7},
                            static_cast<float*>(nullptr));
  CHECK(y == x);
}

TEST_CASE("Dropout refuses a probability below 0, of 1 or more, or NaN", "[nn][dropout]") {
  for (const float wrong : {-0.1f, 1.0f, 2.0f, std::numeric_limits<float>::quiet_NaN()})
    CHECK_THROWS_AS(nn::Dropout{wrong}, pdp::ConfigError);
  CHECK_THROWS_WITH(nn::Dropout{1.5f}, "nn::Dropout was given the probability 1.5; give it one from 0 to below 1");
}

}  // namespace dropout_test
