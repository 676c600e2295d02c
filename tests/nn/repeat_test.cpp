#include <pdp/nn/repeat.hpp>

#include <string>
#include <vector>

#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"
#include "nn/gradient_check.hpp"

namespace nn = pdp::nn;
using nn::Linear;
using nn::Repeat;
using nn::Residual;
using nn::Sequential;
using nn::Tanh;
using pdp::Index;
using pdp::Shape;

TEST_CASE("The gradients of a Repeat equal central differences for depths known at run time", "[nn][gradient]") {
  const Index depth = GENERATE(as<Index>{}, 1, 2, 5), rows = GENERATE(as<Index>{}, 0, 1, 5);
  gradient_check::check_model(Sequential{Linear{3, 4}, Repeat{depth, Sequential{Tanh{}, Linear{4, 4}}}, Linear{4, 2}}, Shape{3}, rows);
  gradient_check::check_model(Sequential{Linear{3, 4}, Repeat{depth, Residual{Sequential{Linear{4, 5}, Tanh{}, Linear{5, 4}}}}}, Shape{3},
                              rows);
  gradient_check::check_model(Repeat{depth, Repeat{2, Linear{3, 3}}}, Shape{3}, rows);
}

TEST_CASE("Repeat numbers its copies and gives each its own parameters", "[nn]") {
  Sequential model{Linear{3, 4}, Repeat{3, Sequential{Tanh{}, Linear{.in = 4, .out = 4, .bias = false}}}};
  nn::Stage<nn::LeafTypes<decltype(model)>, pdp::cpu::Cpu, float> stage{model, Shape{3}, {{0, 7}}, /*seed*/ 1};
  std::vector<std::string> names;
  std::vector<std::vector<float>> values;
  stage.for_each_parameter([&](const nn::Parameter& parameter, std::span<float> numbers) {
    names.push_back(parameter.full_name());
    values.emplace_back(numbers.begin(), numbers.end());
  });
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "1.0.1.weight", "1.1.1.weight", "1.2.1.weight"});
  CHECK(values[2] != values[3]);
  CHECK(values[3] != values[4]);
}

TEST_CASE("Repeat rejects a count below 1", "[nn]") {
  const auto message = [](Index count) { return support::message_of<pdp::ConfigError>([&] { Repeat{count, Tanh{}}; }); };
  CHECK(!message(1));
  CHECK_THAT(message(0).value(), Contains("count of 0") && Contains("at least 1"));
  CHECK_THAT(message(-3).value(), Contains("count of -3"));
}

TEST_CASE("Repeat rejects a block that changes the width if the count is above 1", "[nn]") {
  CHECK(nn::leaves(Repeat{1, Linear{4, 3}}) == 1);
  const auto message = support::message_of<pdp::ShapeError>([] { Repeat{2, Sequential{Tanh{}, Linear{4, 3}}}; });
  CHECK_THAT(message.value(), Contains("layer 1.1 (Linear)") && Contains("expects 4") && Contains("its input has 3"));
}

TEST_CASE("Repeat counts its leaves and computes its width at compile time", "[nn]") {
  constexpr Repeat deep{1000, Sequential{Linear{8, 8}, Tanh{}}};
  static_assert(deep.leaves() == 2000 && nn::input_elements(deep) == 8);
  SUCCEED();
}
