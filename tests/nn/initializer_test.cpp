#include <pdp/nn/initializer.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"
#include "nn/gradient_check.hpp"

namespace nn = pdp::nn;
using nn::Initializer;
using nn::Linear;
using nn::Sequential;
using nn::Tanh;
using pdp::Index;
using pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// Returns the parameters of a model in a stage of `units`, by name and in file order.
template <class T = float, class Model>
std::map<std::string, std::vector<T>> initial_values(const Model& model, Index width, const std::vector<nn::Run>& units,
                                                     std::uint64_t seed) {
  nn::Stage<nn::LeafTypes<Model>, Cpu, T> stage{model, Shape{width}, units, seed};
  std::map<std::string, std::vector<T>> found;
  stage.for_each_parameter([&](const nn::Parameter& parameter, std::span<T> values) {
    std::vector<T> in_file(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      in_file[static_cast<std::size_t>(parameter.file_element(static_cast<Index>(i)))] = values[i];
    found[parameter.full_name()] = in_file;
  });
  return found;
}

/// Returns the initial values of one parameter of a layer, by their numbers in the file.
template <class L>
std::map<Index, double> values_in_file(const L& layer, std::string_view name) {
  std::map<Index, double> found;
  layer.parameters(nn::Path{}, 0, [&](const nn::Parameter& parameter) {
    if (name != parameter.name) return;
    const auto values = parameter.initial_values(pdp::random::make_key(3, name), 0, parameter.elements());
    for (std::size_t i = 0; i < values.size(); ++i) found[parameter.file_element(static_cast<Index>(i))] = values[i];
  });
  return found;
}

auto one_layer(const Linear& layer, std::uint64_t seed) { return initial_values(Sequential{layer}, layer.in, {{0, 1}}, seed); }

}  // namespace

TEST_CASE("Initializer::scale follows the formula of each initializer", "[nn]") {
  CHECK(nn::pytorch_default.scale(64, 10) == Approx(1 / std::sqrt(64.0)));
  CHECK(nn::kaiming_uniform.scale(64, 10) == Approx(std::sqrt(6.0 / 64)));
  CHECK(nn::kaiming_normal.scale(64, 10) == Approx(std::sqrt(2.0 / 64)));
  CHECK(nn::xavier_uniform.scale(64, 10) == Approx(std::sqrt(6.0 / 74)));
  CHECK(nn::xavier_normal.scale(64, 10) == Approx(std::sqrt(2.0 / 74)));
  CHECK(Initializer{6, Initializer::Fan::out}.scale(64, 10) == Approx(std::sqrt(6.0 / 10)));
  CHECK(nn::normal(0.3).scale(64, 10) == Approx(0.3));
  CHECK(nn::uniform(0.3).scale(64, 10) == Approx(0.3));
  CHECK(nn::zeros.scale(64, 10) == 0);
  CHECK(nn::kaiming_uniform.scale(0, 10) == 0);
}

TEST_CASE("Normal initial weights have the mean and deviation of their initializer", "[nn]") {
  const auto [initializer, mean] = GENERATE(table<Initializer, double>(
      {{nn::kaiming_normal, 0.0}, {nn::xavier_normal, 0.0}, {nn::normal(0.3, 2), 2.0}, {nn::truncated_normal(0.5, -1), -1.0}}));
  const Index in = 301, out = 200;
  const auto weight = one_layer(Linear{.in = in, .out = out, .initializer = initializer}, 5).at("0.weight");
  double sum = 0, squares = 0, largest = 0;
  for (const float w : weight) {
    const double distance = static_cast<double>(w) - mean;
    sum += distance;
    squares += distance * distance;
    largest = std::max(largest, std::abs(distance));
  }
  const double count = static_cast<double>(weight.size()), scale = initializer.scale(in, out);
  const bool is_truncated = initializer.kind == Initializer::Kind::truncated_normal;
  // The variance of a normal number within two deviations is 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.77374.
  CHECK(std::sqrt(squares / count) == Approx(is_truncated ? std::sqrt(0.77374) * scale : scale).epsilon(0.015));
  CHECK(std::abs(sum / count) < 5 * scale / std::sqrt(count));
  if (is_truncated)
    CHECK(largest < 2 * scale * (1 + 1e-6));
  else
    CHECK(largest > 3.5 * scale);
}

TEST_CASE("nn::orthogonal gives rows or columns at right angles", "[nn]") {
  const auto [in, out] = GENERATE(table<Index, Index>({{7, 7}, {12, 5}, {5, 12}, {1, 4}, {4, 1}}));
  const double gain = GENERATE(1.0, 1.5);
  // A file holds the weight as [out, in].
  const auto weight = one_layer(Linear{.in = in, .out = out, .initializer = nn::orthogonal(gain)}, 9).at("0.weight");
  const bool by_rows = out <= in;
  const Index vectors = std::min(in, out), length = std::max(in, out);
  const auto at = [&](Index vector, Index i) {
    return static_cast<double>(weight[static_cast<std::size_t>(by_rows ? vector * in + i : i * in + vector)]);
  };
  for (Index a = 0; a < vectors; ++a)
    for (Index b = 0; b <= a; ++b) {
      double product = 0;
      for (Index i = 0; i < length; ++i) product += at(a, i) * at(b, i);
      CHECK(product == Approx(a == b ? gain * gain : 0).margin(1e-6));
    }
}

TEST_CASE("nn::constant and nn::ones set all weights to a value, and biases to zero", "[nn]") {
  const auto [initializer, value] = GENERATE(table<Initializer, float>({{nn::ones, 1.0f}, {nn::constant(-2.5), -2.5f}}));
  const auto values = one_layer(Linear{.in = 7, .out = 9, .initializer = initializer}, 3);
  CHECK(values.at("0.weight") == std::vector<float>(63, value));
  CHECK(values.at("0.bias") == std::vector<float>(9, 0.0f));
}

TEST_CASE("nn::own_values takes each value from the program's function", "[nn]") {
  constexpr Initializer counted =
      nn::own_values([](pdp::random::Key, Index element, Index fan_in, Index) { return static_cast<double>(element + 100 * fan_in); });
  const auto weight = one_layer(Linear{.in = 3, .out = 2, .initializer = counted}, 3).at("0.weight");
  CHECK(weight == std::vector<float>{300, 301, 302, 303, 304, 305});
  const Initializer missing{.kind = Initializer::Kind::function};
  CHECK_THROWS_WITH(one_layer(Linear{.in = 3, .out = 2, .initializer = missing}, 3),
                    "the initializer of 0.weight is a function, but none was given; expected nn::own_values(function)");
}

TEST_CASE("Initial weights fill their bounds evenly with a mean near zero", "[nn]") {
  const Initializer initializer = GENERATE(nn::pytorch_default, nn::kaiming_uniform, nn::xavier_uniform);
  const Index in = GENERATE(as<Index>{}, 200, 301), out = 100;
  const auto values = one_layer(Linear{.in = in, .out = out, .initializer = initializer}, 3);
  const auto& weight = values.at("0.weight");
  const double bound = initializer.scale(in, out), count = static_cast<double>(in * out);

  double sum = 0, squares = 0;
  for (const float w : weight) {
    sum += static_cast<double>(w);
    squares += static_cast<double>(w) * static_cast<double>(w);
  }
  CHECK(static_cast<double>(*std::ranges::max_element(weight)) < bound);
  CHECK(static_cast<double>(*std::ranges::max_element(weight)) > 0.99 * bound);
  CHECK(static_cast<double>(*std::ranges::min_element(weight)) >= -bound * (1 + 1e-6));
  CHECK(static_cast<double>(*std::ranges::min_element(weight)) < -0.99 * bound);
  const double deviation = bound / std::sqrt(3.0);
  CHECK(std::abs(sum / count) < 5 * deviation / std::sqrt(count));
  CHECK(std::sqrt(squares / count) == Approx(deviation).epsilon(0.02));
}

TEST_CASE("Initial biases have PyTorch's bound by default and are zero for other initializers", "[nn]") {
  const auto bias = [](const Initializer& initializer) {
    return one_layer(Linear{.in = 25, .out = 500, .initializer = initializer}, 3).at("0.bias");
  };
  const auto plain = bias(nn::pytorch_default);
  CHECK(*std::ranges::max_element(plain) < 0.2f);
  CHECK(*std::ranges::max_element(plain) > 0.19f);
  CHECK(*std::ranges::min_element(plain) >= -0.2f);
  CHECK(*std::ranges::min_element(plain) < -0.19f);
  for (const Initializer& initializer : {nn::kaiming_uniform, nn::xavier_uniform, nn::zeros})
    CHECK(bias(initializer) == std::vector<float>(500, 0.0f));
}

TEST_CASE("Initial biases have the values of the bias initializer if there is one", "[nn]") {
  const Linear layer{.in = 7, .out = 5, .initializer = nn::zeros, .bias_initializer = nn::constant(0.25)};
  const auto values = one_layer(layer, 3);
  CHECK(values.at("0.weight") == std::vector<float>(35, 0.0f));
  CHECK(values.at("0.bias") == std::vector<float>(5, 0.25f));
  const auto perceptron = initial_values(nn::MultilayerPerceptron{{7, 5, 3}, Tanh{}, layer}, 7, {{0, 3}}, 3);
  CHECK(perceptron.at("0.bias") == std::vector<float>(5, 0.25f));
  CHECK(perceptron.at("2.bias") == std::vector<float>(3, 0.25f));

  // The same distribution as the weight, with the layer's fans.
  const auto drawn = one_layer(Linear{.in = 24, .out = 500, .initializer = nn::zeros, .bias_initializer = nn::kaiming_uniform}, 3);
  CHECK(*std::ranges::max_element(drawn.at("0.bias")) < 0.5f);
  CHECK(*std::ranges::max_element(drawn.at("0.bias")) > 0.49f);
}

TEST_CASE("Initial values of the parts of a layer equal those of the whole layer", "[nn][tensor]") {
  const std::vector<Initializer> all{
      nn::pytorch_default,
      nn::kaiming_normal,
      nn::xavier_uniform,
      nn::normal(2, 1),
      nn::truncated_normal(0.5),
      nn::constant(3),
      nn::orthogonal(1.5),
      nn::own_values([](pdp::random::Key, Index element, Index in, Index out) { return static_cast<double>(element * in + out); })};
  const std::string name = GENERATE("weight", "bias");
  const int parts = GENERATE(1, 3);
  const Index in = 9, out = 15;
  for (const Initializer& initializer : all) {
    const nn::ColumnParallel columns{.in = in, .out = out, .initializer = initializer, .bias_initializer = initializer};
    const nn::RowParallel rows{.in = in, .out = out, .initializer = initializer, .bias_initializer = initializer};
    const auto whole = values_in_file(Linear{in, out, true, initializer, initializer}, name);
    std::map<Index, double> by_columns, by_rows;
    for (int index = 0; index < parts; ++index) {
      by_columns.merge(values_in_file(columns.divided({index, parts}, nn::Path{}), name));
      by_rows.merge(values_in_file(rows.divided({index, parts}, nn::Path{}), name));
    }
    CHECK(whole.size() == static_cast<std::size_t>(name == "weight" ? in * out : out));
    CHECK(by_columns == whole);
    CHECK(by_rows == whole);
  }
}

TEST_CASE("nn::zeros sets the initial weights to zero", "[nn]") {
  CHECK(one_layer(Linear{.in = 7, .out = 9, .initializer = nn::zeros}, 3).at("0.weight") == std::vector<float>(63, 0.0f));
}

TEST_CASE("Initial values are a function of seed, name and position in the file", "[nn]") {
  // Repeats the rule to detect changes of it. A restart without a checkpoint depends on it.
  const auto values = one_layer(Linear{5, 3}, 11);
  for (const auto& [name, numbers] : values) {
    const auto key = pdp::random::make_key(11, std::string_view{name});
    const auto bound = static_cast<float>(1 / std::sqrt(5.0));
    std::vector<float> expected;
    for (Index i = 0; i < static_cast<Index>(numbers.size()); ++i) expected.push_back(bound * (2 * pdp::random::uniform(key, i) - 1));
    CHECK(support::difference(numbers, expected) < 1e-7);
  }
  CHECK(values.size() == 2);
}

TEST_CASE("Initial values are equal for one seed and differ between seeds and names", "[nn]") {
  const Sequential model{Linear{6, 6}, Tanh{}, Linear{6, 6}};
  const auto values = initial_values(model, 6, {{0, 3}}, 1), again = initial_values(model, 6, {{0, 3}}, 1),
             other = initial_values(model, 6, {{0, 3}}, 2);
  CHECK(values == again);
  for (const auto& [name, numbers] : values) CHECK(numbers != other.at(name));
  CHECK(values.at("0.weight") != values.at("2.weight"));
  CHECK(values.at("0.bias") != values.at("2.bias"));
}

TEMPLATE_TEST_CASE("Initial values do not depend on how a model is cut into units", "[nn]", float, double) {
  const Initializer initializer =
      GENERATE(as<Initializer>{}, nn::pytorch_default, nn::kaiming_normal, nn::truncated_normal(1), nn::orthogonal());
  const auto linear = [&](Index in, Index out) { return Linear{.in = in, .out = out, .initializer = initializer}; };
  const Sequential model{linear(5, 7), Tanh{}, nn::Repeat{2, nn::Residual{Sequential{Tanh{}, linear(7, 7)}}}, linear(7, 3)};
  const auto whole = initial_values<TestType>(model, 5, {{0, 5}}, 1);
  CHECK(whole.size() == 8);
  using Units = std::vector<nn::Run>;
  for (const Units& units : {Units{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}, Units{{4, 5}, {2, 4}, {0, 2}}, Units{{3, 5}, {0, 3}}})
    CHECK(initial_values<TestType>(model, 5, units, 1) == whole);

  // A rank that holds some of the layers has the same values for them.
  const auto part = initial_values<TestType>(model, 5, {{2, 4}}, 1);
  CHECK(part.size() == 4);
  for (const auto& [name, numbers] : part) CHECK(numbers == whole.at(name));
}
