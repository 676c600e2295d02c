#include <pdp/core/error.hpp>
#include <pdp/core/pooling.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/testing/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace pool_test {

namespace nn = pdp::nn;
using pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

struct Results {
  std::vector<double> y, gradient_x;
};

/// Returns the results of a layer for images of two channels, in T.
template <class T, class L>
Results results(const L& layer, Index height, Index width, const std::vector<T>& x, const Cpu& cpu = {}) {
  const Shape input{2, height, width};
  const Index in = input.elements(), out = layer.output(input).elements(), rows = pdp::as_index(x.size()) / in;
  const std::vector<T> gradient_y = support::normal<T>(rows * out, 2);
  std::vector<T> y(gradient_y.size(), T{99}), gradient_x(x.size(), T{99});
  nn::State<T> state{};
  state.input = input;
  const Matrix<const T> from{x.data(), rows, in}, read_y{y.data(), rows, out};
  T* const saved = nullptr;
  layer.forward(cpu, state, from, Matrix<T>{y.data(), rows, out}, saved);
  layer.backward_input(cpu, state, from, read_y, Matrix<const T>{gradient_y.data(), rows, out}, Matrix<T>{gradient_x.data(), rows, in},
                       saved);
  return {{y.begin(), y.end()}, {gradient_x.begin(), gradient_x.end()}};
}

/// Returns the results by the definition: windows(axis, window) returns the positions of a window, some of them outside; pool() gets the
/// positions inside and the number of all, and returns the value and the part of the gradient that each position gets.
template <class T, class Windows, class Pool>
Results expected(Index height, Index width, const std::pair<Index, Index>& counts, const std::vector<T>& x, const Windows& windows,
                 const Pool& pool) {
  const Index rows = pdp::as_index(x.size()) / (2 * height * width);
  const std::vector<T> gradient_y = support::normal<T>(rows * 2 * counts.first * counts.second, 2);
  Results found{std::vector<double>(gradient_y.size()), std::vector<double>(x.size())};
  for (Index channel = 0; channel < rows * 2; ++channel)
    for (Index row = 0; row < counts.first; ++row)
      for (Index column = 0; column < counts.second; ++column) {
        std::vector<std::size_t> inside;
        Index all = 0;
        for (const Index i : windows(0, row))
          for (const Index j : windows(1, column)) {
            ++all;
            if (i >= 0 && i < height && j >= 0 && j < width) inside.push_back(pdp::as_size((channel * height + i) * width + j));
          }
        const auto to = pdp::as_size((channel * counts.first + row) * counts.second + column);
        const auto [value, shares] = pool(inside, all);
        found.y[to] = value;
        for (std::size_t i = 0; i < inside.size(); ++i) found.gradient_x[inside[i]] += shares[i] * static_cast<double>(gradient_y[to]);
      }
  return found;
}

using Pooled = std::pair<double, std::vector<double>>;

template <class T>
auto largest_of(const std::vector<T>& x) {
  return [&x](const std::vector<std::size_t>& inside, Index) {
    std::vector<double> shares(inside.size());
    double value = -std::numeric_limits<double>::infinity();
    std::size_t first = 0;
    for (std::size_t i = 0; i < inside.size(); ++i)
      if (static_cast<double>(x[inside[i]]) > value) {
        value = static_cast<double>(x[inside[i]]);
        first = i;
      }
    if (!inside.empty()) shares[first] = 1;
    return Pooled{value, shares};
  };
}
template <class T>
auto mean_of(const std::vector<T>& x, bool counts_padding) {
  return [&x, counts_padding](const std::vector<std::size_t>& inside, Index all) {
    const auto count = static_cast<double>(std::max<Index>(counts_padding ? all : pdp::as_index(inside.size()), 1));
    double sum = 0;
    for (const std::size_t at : inside) sum += static_cast<double>(x[at]);
    return Pooled{sum / count, std::vector<double>(inside.size(), 1 / count)};
  };
}

template <class T>
void check_same(const Results& found, const Results& wanted) {
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
  CHECK(support::difference(found.y, wanted.y) < tolerance);
  CHECK(support::difference(found.gradient_x, wanted.gradient_x) < tolerance);
}

template <class T>
void check_windows(Index height, Index width, nn::Size2d kernel, nn::Size2d stride, nn::Size2d padding, nn::Size2d dilation, Index rows) {
  CAPTURE(height, width, kernel.height, kernel.width, stride.height, stride.width, padding.height, padding.width, dilation.height,
          dilation.width, rows);
  std::vector<T> x = support::normal<T>(rows * 2 * height * width, 1);
  for (T& each : x) each = std::round(each * 2) / 2;  // equal values occur
  const nn::MaxPool2d largest{kernel, {.stride = stride, .padding = padding, .dilation = dilation}};
  const Shape output = largest.output(Shape{2, height, width});
  const auto windows = [&](const nn::Size2d& step) {
    return [=](int axis, Index window) {
      const auto of = [axis](const nn::Size2d& both) { return axis == 0 ? both.height : both.width; };
      std::vector<Index> positions;
      for (Index i = 0; i < of(kernel); ++i) positions.push_back(window * of(stride) - of(padding) + i * of(step));
      return positions;
    };
  };
  for (const pdp::cpu::Simd registers : support::registers())
    for (const int threads : {1, 3})
      check_same<T>(results(largest, height, width, x, Cpu{.threads = threads, .registers = registers}),
                    expected(height, width, {output[1], output[2]}, x, windows(dilation), largest_of(x)));
  for (const bool counts_padding : {true, false}) {
    const nn::AvgPool2d mean{kernel, {.stride = stride, .padding = padding, .counts_padding = counts_padding}};
    if (mean.misfit(Shape{2, height, width})) continue;
    const Shape of_mean = mean.output(Shape{2, height, width});
    for (const pdp::cpu::Simd registers : support::registers())
      check_same<T>(results(mean, height, width, x, Cpu{.registers = registers}),
                    expected(height, width, {of_mean[1], of_mean[2]}, x, windows(1), mean_of(x, counts_padding)));
  }
}

template <class T>
void check_adaptive(Index height, Index width, nn::Size2d size, Index rows) {
  CAPTURE(height, width, size.height, size.width, rows);
  const std::vector<T> x = support::normal<T>(rows * 2 * height * width, 1);
  const auto windows = [&](int axis, Index window) {
    const auto extent = static_cast<double>(axis == 0 ? height : width), count = static_cast<double>(axis == 0 ? size.height : size.width);
    std::vector<Index> positions;
    const auto end = static_cast<Index>(std::ceil(static_cast<double>(window + 1) * extent / count));
    for (auto i = static_cast<Index>(std::floor(static_cast<double>(window) * extent / count)); i < end; ++i) positions.push_back(i);
    return positions;
  };
  for (const int threads : {1, 3})
    check_same<T>(results(nn::AdaptiveAvgPool2d{size}, height, width, x, Cpu{.threads = threads}),
                  expected(height, width, {size.height, size.width}, x, windows, mean_of(x, false)));
}

}  // namespace

TEMPLATE_TEST_CASE("MaxPool2d and AvgPool2d have the values and gradients of their definitions", "[nn][pool]", double, float) {
  for (const Index rows : {0, 1, 3}) {
    check_windows<TestType>(6, 4, 2, 2, 0, 1, rows);
    check_windows<TestType>(7, 5, 2, 2, 0, 1, rows);  // a row and a column are in no window
    check_windows<TestType>(5, 9, 3, 2, 1, 1, rows);
    check_windows<TestType>(4, 6, 3, 1, 1, 1, rows);  // windows overlap
    check_windows<TestType>(8, 7, {3, 2}, {1, 3}, {1, 0}, {2, 1}, rows);
    check_windows<TestType>(3, 3, 1, 2, 0, 1, rows);
    check_windows<TestType>(1, 1, 2, 2, 1, 3, rows);  // windows without a value
    check_windows<TestType>(2, 1300, {2, 4}, {1, 2}, {0, 2}, 1, rows);
  }
  check_windows<TestType>(64, 64, 2, 2, 0, 1, 8);
}

TEMPLATE_TEST_CASE("AdaptiveAvgPool2d has the values and gradients of its definition", "[nn][pool]", double, float) {
  for (const Index rows : {0, 1, 3}) {
    check_adaptive<TestType>(7, 7, 1, rows);
    check_adaptive<TestType>(7, 5, {3, 2}, rows);
    check_adaptive<TestType>(2, 3, {5, 4}, rows);  // more windows than positions
    check_adaptive<TestType>(6, 4, {6, 4}, rows);
    check_adaptive<TestType>(10, 31, {4, 7}, rows);
  }
  check_adaptive<TestType>(64, 64, 7, 8);
}

TEST_CASE("Pooling layers have the gradients of central differences", "[nn][pool]") {
  const auto check_gradients = [](const auto& layer, const Shape& input) {
    const auto found = pdp::testing::check_gradients<double>(layer, input);
    INFO(found.text());
    CHECK(found);
  };
  check_gradients(nn::MaxPool2d{3, {.stride = 2, .padding = 1}}, Shape{2, 5, 6});
  check_gradients(nn::MaxPool2d{2, {.dilation = 2}}, Shape{1, 5, 4});
  check_gradients(nn::AvgPool2d{{2, 3}, {.padding = {1, 0}}}, Shape{2, 4, 6});
  check_gradients(nn::AvgPool2d{3, {.stride = 1, .padding = 1, .counts_padding = false}}, Shape{1, 3, 4});
  check_gradients(nn::AdaptiveAvgPool2d{{2, 3}}, Shape{2, 5, 4});
}

TEST_CASE("MaxPool2d gives NaN for a window with NaN", "[nn][pool]") {
  for (const std::size_t bad : {0UL, 1UL, 4UL, 5UL}) {
    std::vector<float> x(32, 1.0f);
    x[bad] = std::numeric_limits<float>::quiet_NaN();
    const Results found = results(nn::MaxPool2d{2}, 4, 4, x);
    for (std::size_t i = 0; i < found.y.size(); ++i) CHECK(std::isnan(found.y[i]) == (i == 0));
    const Results wide = results(nn::MaxPool2d{{2, 3}, {.stride = {2, 1}, .padding = {0, 1}}}, 4, 4, x);
    for (std::size_t i = 0; i < wide.y.size(); ++i) {
      const bool is_beside = i < 4 && i + 1 >= bad % 4 && i <= bad % 4 + 1;
      CHECK(std::isnan(wide.y[i]) == is_beside);
    }
  }
}

TEST_CASE("Pooling layers refuse sizes and images that do not fit", "[nn][pool]") {
  CHECK_THROWS_WITH((nn::MaxPool2d{{0, 2}}), "nn::MaxPool2d was given the kernel 0 x 2; both numbers must be 1 or more");
  CHECK_THROWS_WITH((nn::AvgPool2d{2, {.stride = 0}}), "nn::AvgPool2d was given the stride 0 x 0; both numbers must be 1 or more");
  CHECK_THROWS_WITH((nn::MaxPool2d{3, {.padding = {1, 2}}}),
                    "nn::MaxPool2d was given the padding 1 x 2 for windows of 3 x 3 positions; give it at most half of that");
  CHECK_THROWS_WITH((nn::AdaptiveAvgPool2d{{1, 0}}), "nn::AdaptiveAvgPool2d was given the size 1 x 0; both numbers must be 1 or more");
  CHECK_NOTHROW(nn::MaxPool2d{3, {.padding = 2, .dilation = 2}});
  const auto refused = [](const auto& model, const Shape& input) { nn::check_widths(nn::flow(model, input)); };
  CHECK_THROWS_WITH(refused(nn::MaxPool2d{5}, Shape{3, 4, 9}),
                    Contains("(MaxPool2d) expects at least 5 rows (the second dimension), but its input has 4 (shape [3, 4, 9])"));
  CHECK_THROWS_WITH(refused(nn::AdaptiveAvgPool2d{2}, Shape{16}),
                    Contains("(AdaptiveAvgPool2d) expects 3 dimensions (channels, height, width), but its input has 1"));
  CHECK(nn::flow(nn::AdaptiveAvgPool2d{{2, 3}}, Shape{}).shape == Shape{Shape::any, 2, 3});
  CHECK(nn::flow(nn::AvgPool2d{2}, Shape{5, Shape::any, 7}).shape == Shape{5, Shape::any, 3});
}

}  // namespace pool_test
