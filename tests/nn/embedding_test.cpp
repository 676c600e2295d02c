#include <pdp/core/token.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/positions.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/testing/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace embedding_test {

namespace nn = pdp::nn;
using pdp::Index, pdp::Matrix, pdp::Shape, pdp::TokenRows;
using pdp::cpu::Cpu;

namespace {

std::vector<std::int32_t> tokens(Index count, Index vocabulary) {
  std::vector<std::int32_t> all;
  for (Index i = 0; i < count; ++i) all.push_back(static_cast<std::int32_t>(i * i * 7 % vocabulary));
  return all;
}

/// Compares embed and embed_backward with loops over single numbers, for a table of `own` of the rows.
template <class T>
void check(Index count, const TokenRows& rows, Index own, Index width, bool accumulate) {
  CAPTURE(count, rows.first, rows.vocabulary, own, width, accumulate);
  const auto which = tokens(count, rows.vocabulary);
  const auto weight = support::normal<T>(own * width, 1), gradient_y = support::normal<T>(count * width, 2),
             before = support::normal<T>(own * width, 3);
  std::vector<T> y, gradient = before;
  if (!accumulate) gradient.assign(gradient.size(), T{});
  for (Index i = 0; i < count; ++i)
    for (Index column = 0; column < width; ++column) {
      const Index row = which[pdp::as_size(i)] - rows.first;
      const bool is_own = row >= 0 && row < own;
      const auto at = pdp::as_size((is_own ? row : 0) * width + column);
      y.push_back(is_own ? weight[at] : T{});
      if (is_own) gradient[at] += gradient_y[pdp::as_size(i * width + column)];
    }
  const Matrix<const std::int32_t> given{which.data(), 1, count};
  for (const pdp::cpu::Simd registers : support::registers())
    for (const int threads : {1, 3}) {
      const Cpu cpu{.threads = threads, .registers = registers};
      std::vector<T> found(y.size(), T{99}), of_weight = before;
      embed(cpu, given, rows, Matrix<const T>{weight.data(), own, width}, Matrix<T>{found.data(), 1, count * width});
      CHECK(found == y);
      embed_backward(cpu, given, rows, Matrix<const T>{gradient_y.data(), 1, count * width}, Matrix<T>{of_weight.data(), own, width},
                     accumulate);
      CHECK(of_weight == gradient);
    }
}

/// A layer of tokens without parameters, as a user writes it: [positions] -> [positions, vocabulary].
struct OneHot : nn::NoParameters {
  static constexpr const char* name = "OneHot";
  using Input = std::int32_t;
  Index vocabulary = 5;

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input.with_appended(vocabulary); }
  template <class T>
  void forward(const Cpu&, const nn::State<T>&, Matrix<const std::int32_t> x, Matrix<T> y, T*) const {
    std::ranges::fill(y.values(), T{});
    for (Index i = 0; i < x.size(); ++i) y.data[i * vocabulary + x.data[i]] = 1;
  }
};
static_assert(nn::LayerOn<OneHot, Cpu, float> && nn::takes_tokens<OneHot>);

}  // namespace

TEST_CASE("Embedding copies and adds up the rows of its tokens", "[nn][embedding]") {
  for (const bool accumulate : {false, true})
    for (const Index width : {1, 7, 16, 100}) {
      check<float>(0, {0, 5}, 5, width, accumulate);
      check<float>(1, {0, 1}, 1, width, accumulate);
      check<double>(37, {0, 11}, 11, width, accumulate);
      check<float>(5000, {0, 13}, 13, width, accumulate);
      check<float>(70, {4, 12}, 4, width, accumulate);  // a part of a table
      check<double>(70, {9, 12}, 3, width, accumulate);
    }
}

TEST_CASE("A model of tokens has the gradients of central differences", "[nn][embedding]") {
  const auto check = [](const auto& model, const Shape& input) {
    const auto found = pdp::testing::check_gradients<double>(model, input);
    INFO(found.text());
    CHECK(found);
  };
  check(nn::Embedding{7, 3}, Shape{5});
  check(nn::Embedding{1, 1}, Shape{1});
  check(nn::Embedding{4, 3}, Shape{2, 3});
  check(nn::Sequential{OneHot{}, nn::Linear{5, 3}}, Shape{4});
  check(nn::Sequential{nn::Embedding{11, 6}, nn::LearnedPositions{5, 6}, nn::Linear{6, 3}, nn::Tanh{}}, Shape{4});
  for (const Index positions : {1, 4, 5}) {
    check(nn::LearnedPositions{5, 3}, Shape{positions, 3});
    check(nn::SinusoidalPositions{5, 3}, Shape{positions, 3});
  }
}

TEST_CASE("SinusoidalPositions adds sines and cosines of growing wavelengths", "[nn][positions]") {
  constexpr nn::SinusoidalPositions layer{9, 6};
  layer.parameters({}, 0, [](const nn::Parameter& parameter) {
    CHECK(parameter.full_name() == "pe");
    CHECK(parameter.is_buffer);
    const std::vector<double> table = parameter.initial_values({}, 0, parameter.elements());
    for (Index position = 0; position < 9; ++position)
      for (Index i = 0; i < 3; ++i) {
        const double angle = static_cast<double>(position) / std::pow(10000.0, static_cast<double>(2 * i) / 6);
        CHECK(table[pdp::as_size(position * 6 + 2 * i)] == Approx(std::sin(angle)).margin(1e-12));
        CHECK(table[pdp::as_size(position * 6 + 2 * i + 1)] == Approx(std::cos(angle)).margin(1e-12));
      }
  });
}

TEST_CASE("Embedding and positions give shapes that later layers check", "[nn][embedding]") {
  constexpr nn::Sequential model{nn::Embedding{10, 8}, nn::LearnedPositions{16, 8}, nn::Linear{8, 3}};
  STATIC_REQUIRE(nn::takes_tokens<nn::Embedding>);
  STATIC_REQUIRE(std::is_same_v<nn::SampleOf<decltype(model), float>, std::int32_t>);
  CHECK(nn::flow(model, Shape{5}).shape == Shape{5, 3});
  CHECK(nn::input_elements(model) == 0);
  CHECK_THROWS_WITH(nn::outline(model, Shape{17}),
                    "layer 1 (LearnedPositions) expects at most 16 positions, but its input has 17 (shape [17, 8], the output of "
                    "Embedding); give it a smaller input");
  CHECK_THROWS_WITH(nn::outline(model, Shape{2, 5}), Contains("layer 1 (LearnedPositions) expects 2 dimensions, but its input has 3"));
  CHECK_THROWS_WITH(nn::outline(nn::Embedding{10, 8}, Shape{1, 2, 3, 4}), Contains("expects 3 dimensions, but its input has 4"));
}

TEST_CASE("A layer that takes tokens is refused behind another one", "[nn][embedding]") {
  const auto outline = [](nn::Embedding second) {
    return nn::outline(nn::Sequential{nn::Repeat{2, nn::Sequential{second, nn::Tanh{}}}}, Shape{4});
  };
  CHECK_THROWS_WITH(
      outline({5, 2}),
      "layer 1.0 (Embedding) takes tokens, but its input is the output of Tanh; only the first layer of a model can take tokens");
}

TEST_CASE("A token out of range is named with its row and position", "[nn][embedding]") {
  const std::vector<std::int32_t> good{0, 1, 2, 9, 8, 7}, too_large{0, 1, 2, 9, 10, 7}, negative{0, -1, 2, 9, 8, 7};
  const auto check = [](const std::vector<std::int32_t>& tokens) { nn::Embedding{10, 2}.check({tokens.data(), 2, 3}); };
  CHECK_NOTHROW(check(good));
  CHECK_THROWS_WITH(check(too_large), Contains("position 1 of row 1 of a batch is token 10, but the model has tokens 0 to 9"));
  CHECK_THROWS_WITH(check(negative), Contains("position 1 of row 0 of a batch is token -1"));
}

}  // namespace embedding_test
