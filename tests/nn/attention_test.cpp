#include <pdp/core/attention.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/multi_head_attention.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/testing/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace attention_test {

namespace nn = pdp::nn;
using pdp::Attention, pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// The results of attend() and attend_backward() in double, from matrices of all positions by all positions.
struct Reference {
  std::vector<double> y, sums, gradient_x;
};
template <class T>
Reference reference(const Attention& how, Index rows, const std::vector<T>& x, const std::vector<T>& gradient_y) {
  const Index positions = how.positions;
  Reference found{std::vector<double>(gradient_y.size()), {}, std::vector<double>(x.size())};
  const auto in = [&](Index row, Index position, Index column) { return pdp::as_size((row * positions + position) * how.row() + column); };
  const auto out = [&](Index row, Index position, Index column) { return pdp::as_size((row * positions + position) * how.out() + column); };
  for (Index row = 0; row < rows; ++row)
    for (Index p = 0; p < positions; ++p)
      for (Index head = 0; head < how.heads; ++head) {
        const Index shared = head / (how.heads / how.key_heads), q = how.query(head), k = how.key(shared), v = how.value(shared),
                    o = how.output(head);
        std::vector<double> weight, of_weight;
        double sum = 0, mean = 0;
        for (Index key = 0; key < (how.causal ? p + 1 : positions); ++key) {
          double score = 0;
          for (Index i = 0; i < how.width; ++i)
            score += static_cast<double>(x[in(row, p, q + i)]) * static_cast<double>(x[in(row, key, k + i)]);
          weight.push_back(std::exp(score / std::sqrt(static_cast<double>(how.width))));
          sum += weight.back();
        }
        found.sums.push_back(std::log(sum));
        for (Index key = 0; key < pdp::as_index(weight.size()); ++key) {
          weight[pdp::as_size(key)] /= sum;
          double gradient = 0;
          for (Index i = 0; i < how.width; ++i) {
            const auto value = static_cast<double>(x[in(row, key, v + i)]), of_y = static_cast<double>(gradient_y[out(row, p, o + i)]);
            found.y[out(row, p, o + i)] += weight[pdp::as_size(key)] * value;
            found.gradient_x[in(row, key, v + i)] += weight[pdp::as_size(key)] * of_y;
            gradient += of_y * value;
          }
          of_weight.push_back(gradient);
          mean += weight[pdp::as_size(key)] * gradient;
        }
        for (Index key = 0; key < pdp::as_index(weight.size()); ++key)
          for (Index i = 0; i < how.width; ++i) {
            const double of_product =
                weight[pdp::as_size(key)] * (of_weight[pdp::as_size(key)] - mean) / std::sqrt(static_cast<double>(how.width));
            found.gradient_x[in(row, p, q + i)] += of_product * static_cast<double>(x[in(row, key, k + i)]);
            found.gradient_x[in(row, key, k + i)] += of_product * static_cast<double>(x[in(row, p, q + i)]);
          }
      }
  return found;
}

template <class T>
void check(const Attention& how, Index rows, double tolerance) {
  CAPTURE(rows, how.positions, how.heads, how.key_heads, how.width, how.causal);
  const Index x_cols = how.positions * how.row(), y_cols = how.positions * how.out();
  std::vector<T> x = support::normal<T>(rows * x_cols, 1), gradient_y = support::normal<T>(rows * y_cols, 2);
  const Reference expected = reference(how, rows, x, gradient_y);
  for (const pdp::cpu::Simd registers : support::registers())
    for (const int threads : {1, 3}) {
      const Cpu cpu{.threads = threads, .registers = registers};
      std::vector<T> y(gradient_y.size(), T{99}), gradient_x(x.size(), T{99}),
          sums(pdp::as_size(rows * how.positions * how.heads * pdp::attention_sums), T{99});
      attend(cpu, how, Matrix<const T>{x.data(), rows, x_cols}, Matrix<T>{y.data(), rows, y_cols}, sums.data());
      CHECK(support::difference(y, expected.y) < tolerance);
      for (std::size_t i = 0; i < expected.sums.size(); ++i)
        REQUIRE(static_cast<double>(sums[2 * i]) + static_cast<double>(sums[2 * i + 1]) == Approx(expected.sums[i]).epsilon(tolerance));
      attend_backward(cpu, how, Matrix<const T>{x.data(), rows, x_cols}, Matrix<const T>{y.data(), rows, y_cols},
                      Matrix<const T>{gradient_y.data(), rows, y_cols}, static_cast<const T*>(sums.data()),
                      Matrix<T>{gradient_x.data(), rows, x_cols});
      CHECK(support::difference(gradient_x, expected.gradient_x) < tolerance);
    }
}

}  // namespace

TEST_CASE("Attention has the values and gradients of its definition", "[nn][attention]") {
  for (const bool causal : {false, true}) {
    for (const Index positions : {1, 2, 7, 65}) {
      check<double>({positions, 4, 4, 5, causal}, 2, 1e-12);
      check<double>({positions, 4, 2, 8, causal}, 2, 1e-12);
      check<float>({positions, 6, 1, 16, causal}, 2, 1e-5);
    }
    check<double>({300, 2, 1, 3, causal}, 1, 1e-12);  // several blocks of queries and of keys
    check<float>({520, 1, 1, 33, causal}, 1, 1e-5);
    check<float>({5, 2, 2, 4, causal}, 0, 1e-5);
  }
}

TEST_CASE("Attention to large scores is exact", "[nn][attention]") {
  // Without the subtraction of the largest score, the exponentials would overflow. Across blocks of keys, the largest score grows.
  const Attention how{600, 1, 1, 1, false};
  std::vector<float> x, y(600), sums(1200);
  for (int position = 0; position < 600; ++position)
    for (const float value : {30.0F, static_cast<float>(position), static_cast<float>(position % 7)}) x.push_back(value);
  attend(Cpu{}, how, Matrix<const float>{x.data(), 1, 1800}, Matrix<float>{y.data(), 1, 600}, sums.data());
  CHECK(y[0] == 599 % 7);  // the score of the last key is 30 above the others
  CHECK(sums[0] == Approx(30 * 599));
}

TEST_CASE("MultiHeadAttention has the gradients of central differences", "[nn][attention]") {
  const auto check = [](const nn::MultiHeadAttention& layer, Index positions) {
    const auto found = pdp::testing::check_gradients<double>(layer, Shape{positions, layer.width()});
    INFO(found.text());
    CHECK(found);
  };
  for (const bool causal : {false, true})
    for (const double rotary : {0.0, 100.0}) {
      check({6, 3, {.causal = causal, .rotary = rotary}}, 5);
      check({8, 4, {.causal = causal, .key_heads = 2, .rotary = rotary, .bias = false}}, 3);
      check({8, 2, {.causal = causal, .key_heads = 1, .rotary = rotary}}, 1);
    }
}

TEST_CASE("Causal attention does not see later positions, and rotary positions only their distances", "[nn][attention]") {
  const auto run = [](const nn::MultiHeadAttention& layer, std::vector<double> x) {
    const Index positions = pdp::as_index(x.size()) / layer.width();
    auto parameters = support::normal<double>(layer.parameter_elements(), 5);
    std::vector<double> y(x.size()), saved(pdp::as_size(layer.saved_elements(Shape{positions, layer.width()})));
    nn::State<double> state{parameters.data()};
    state.input = Shape{positions, layer.width()};
    layer.forward(Cpu{}, state, Matrix<const double>{x.data(), 1, pdp::as_index(x.size())},
                  Matrix<double>{y.data(), 1, pdp::as_index(x.size())}, saved.data());
    return y;
  };
  const auto x = support::normal<double>(7 * 4, 1);
  auto other = x;
  for (std::size_t i = 5 * 4; i < other.size(); ++i) other[i] += 1;
  const nn::MultiHeadAttention causal{4, 2, {.causal = true, .rotary = 100}};
  const auto first = run(causal, x), second = run(causal, other);
  for (std::size_t i = 0; i < 5 * 4; ++i) CHECK(first[i] == second[i]);
  CHECK(first[5 * 4] != second[5 * 4]);

  // Without positions, attention cannot tell equal vectors apart.
  std::vector<double> pattern;
  for (int repeat = 0; repeat < 2; ++repeat) pattern.insert(pattern.end(), x.begin(), x.begin() + 3 * 4);
  const auto plain = run({4, 2}, pattern), rotated = run({4, 2, {.rotary = 100}}, pattern);
  CHECK(plain[0] == Approx(plain[3 * 4]));
  CHECK(std::abs(rotated[0] - rotated[3 * 4]) > 1e-6);
  // Vectors that add nothing in front of the others move their positions. Causal attention of rotated queries and keys sees no difference.
  const Attention how{9, 1, 1, 4, true};
  auto projected = support::normal<double>(9 * how.row(), 3);
  const auto scores = [&](Index at) {  // of 4 positions from `at` on, which have the same vectors
    std::vector<double> moved(projected.size());
    std::copy_n(projected.begin(), 4 * how.row(), moved.begin() + at * how.row());
    rotate(Cpu{}, how, pdp::Rotation{.base = 100}, Matrix<double>{moved.data(), 1, 9 * how.row()});
    std::vector<double> found;
    for (Index q = at; q < at + 4; ++q)
      for (Index k = at; k < at + 4; ++k) {
        found.push_back(0);
        for (Index i = 0; i < 4; ++i)
          found.back() += moved[pdp::as_size(q * how.row() + i)] * moved[pdp::as_size(k * how.row() + how.key(0) + i)];
      }
    return found;
  };
  CHECK(support::difference(scores(0), scores(5)) < 1e-12);
}

TEST_CASE("MultiHeadAttention refuses sizes that do not fit, and says why", "[nn][attention]") {
  const auto make = [](Index width, Index heads, nn::AttentionOptions options) { return nn::MultiHeadAttention{width, heads, options}; };
  CHECK_THROWS_WITH(make(10, 3, {}),
                    "MultiHeadAttention: expected a number of heads that divides the width 10, found 3; change one of the two");
  CHECK_THROWS_WITH(make(10, 0, {}),
                    "MultiHeadAttention: expected a number of heads that divides the width 10, found 0; change one of the two");
  CHECK_THROWS_WITH(make(12, 4, {.key_heads = 3}),
                    Contains("expected a number of key heads that divides the 4 heads, found 3; change one"));
  CHECK_THROWS_WITH(make(12, 4, {.rotary = 1e4}), Contains("each of the 4 heads has 3 of the 12 values"));
  CHECK_THROWS_WITH(make(12, 3, {.rotary = -1}), Contains("the base of rotary positions is -1; give a positive number"));
  CHECK_THROWS_WITH(nn::outline(make(12, 4, {}), Shape{5, 10}), Contains("expects 12 values in the last dimension, but its input has 10"));
  CHECK_THROWS_WITH(nn::outline(make(12, 4, {}), Shape{12}), Contains("expects 2 dimensions, but its input has 1"));
}

TEST_CASE("The parameters of MultiHeadAttention are those of PyTorch", "[nn][attention]") {
  std::vector<std::string> names;
  std::vector<std::vector<Index>> shapes;
  nn::MultiHeadAttention{8, 4, {.key_heads = 2}}.parameters({}, 0, [&](const nn::Parameter& parameter) {
    names.push_back(parameter.full_name());
    shapes.push_back(parameter.file_shape());
  });
  CHECK(names == std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"});
  CHECK(shapes == std::vector<std::vector<Index>>{{16, 8}, {16}, {8, 8}, {8}});
}

}  // namespace attention_test
