#include <pdp/core/convolution.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/cpu/onednn/convolution.hpp>

#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace onednn_convolution_test {

namespace onednn = pdp::cpu::onednn;
using pdp::Convolution, pdp::Index, pdp::Matrix, pdp::cpu::Cpu;

namespace {

/// Checks that oneDNN computes a convolution itself, and that its results are those of Eigen.
void check(const Convolution& how, Index rows) {
  CAPTURE(how.channels, how.filters, how.groups, rows);
  const Index x_cols = how.channels * how.positions(), y_cols = how.filters * how.windows(), weights = how.filters * how.depth();
  const std::vector<float> x = support::normal(rows * x_cols, 1), weight = support::normal(weights, 2),
                           bias = support::normal(how.filters, 3), gradient_y = support::normal(rows * y_cols, 4);
  const Cpu eigen{.products = pdp::cpu::Products::eigen};
  const auto tolerance = 1e-5 * static_cast<double>(rows * how.windows());

  std::vector<float> y(gradient_y.size(), 99), expected(y.size(), 99);
  REQUIRE(onednn::convolve(how, rows, x.data(), weight.data(), bias.data(), y.data(), 1));
  convolve(eigen, how, Matrix<const float>{x.data(), rows, x_cols}, weight.data(), bias.data(),
           Matrix<float>{expected.data(), rows, y_cols});
  CHECK(support::difference(y, expected) < 1e-4);

  std::vector<float> gradient_x(x.size(), 99), expected_x(x.size(), 99);
  REQUIRE(onednn::convolve_backward_input(how, rows, weight.data(), gradient_y.data(), gradient_x.data(), 1));
  convolve_backward_input(eigen, how, weight.data(), Matrix<const float>{gradient_y.data(), rows, y_cols},
                          Matrix<float>{expected_x.data(), rows, x_cols});
  CHECK(support::difference(gradient_x, expected_x) < 1e-4);

  for (const bool accumulate : {false, true}) {
    std::vector<float> of_weight(weight.size(), 0.5f), of_bias(bias.size(), 0.5f), expected_weight = of_weight, expected_bias = of_bias;
    REQUIRE(onednn::convolve_backward_weight(how, rows, x.data(), gradient_y.data(), of_weight.data(), of_bias.data(), accumulate, 1));
    convolve_backward_weight(eigen, how, Matrix<const float>{x.data(), rows, x_cols}, Matrix<const float>{gradient_y.data(), rows, y_cols},
                             expected_weight.data(), expected_bias.data(), accumulate);
    CHECK(support::difference(of_weight, expected_weight) < tolerance);
    CHECK(support::difference(of_bias, expected_bias) < tolerance);
  }
}

}  // namespace

TEST_CASE("oneDNN computes convolutions of usual sizes, with Eigen's results", "[onednn][conv2d]") {
  check({.channels = 1,
         .filters = 6,
         .vertical = {.extent = 28, .size = 5, .padding = 2},
         .horizontal = {.extent = 28, .size = 5, .padding = 2}},
        3);
  check({.channels = 16,
         .filters = 32,
         .vertical = {.extent = 9, .size = 3, .stride = 2, .padding = 1},
         .horizontal = {.extent = 8, .size = 3, .stride = 2, .padding = 1}},
        2);
  check({.channels = 6,
         .filters = 4,
         .groups = 2,
         .vertical = {.extent = 7, .size = 3},
         .horizontal = {.extent = 6, .size = 2, .dilation = 2}},
        2);
}

TEST_CASE("oneDNN's convolutions work for more numbers of rows than there is room for kernels", "[onednn][conv2d]") {
  for (Index rows = 1; rows <= 100; ++rows)  // three forms for each
    check({.channels = 1, .filters = 2, .vertical = {.extent = 3, .size = 2}, .horizontal = {.extent = 3, .size = 2}}, rows);
  check({.channels = 1, .filters = 2, .vertical = {.extent = 3, .size = 2}, .horizontal = {.extent = 3, .size = 2}}, 1);
}

}  // namespace onednn_convolution_test
