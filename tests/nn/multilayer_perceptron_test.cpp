#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/stage.hpp>

#include <string>
#include <vector>

#include "catch.hpp"

namespace nn = pdp::nn;
using pdp::Index, pdp::Shape;

namespace {

/// Returns the name and the initial values of each parameter.
template <class Model>
std::vector<std::pair<std::string, std::vector<float>>> parameters(const Model& model) {
  nn::Stage<nn::LeafTypes<Model>, pdp::cpu::Cpu, float> stage{model, Shape{5}, {{0, static_cast<int>(nn::leaves(model))}}, /*seed*/ 3};
  std::vector<std::pair<std::string, std::vector<float>>> found;
  stage.for_each_parameter([&](const nn::Parameter& parameter, std::span<float> values) {
    found.emplace_back(parameter.full_name(), std::vector<float>{values.begin(), values.end()});
  });
  return found;
}

}  // namespace

TEST_CASE("MultilayerPerceptron has the parameter names and values of the equal Sequential", "[nn]") {
  CHECK(parameters(nn::MultilayerPerceptron{{5, 7, 3}, nn::Tanh{}}) ==
        parameters(nn::Sequential{nn::Linear{5, 7}, nn::Tanh{}, nn::Linear{7, 3}}));
  CHECK(parameters(nn::MultilayerPerceptron{{5, 7, 6, 3}, nn::Relu{}, {.bias = false, .initializer = nn::kaiming_uniform}}) ==
        parameters(nn::Sequential{nn::Linear{5, 7, false, nn::kaiming_uniform}, nn::Relu{}, nn::Linear{7, 6, false, nn::kaiming_uniform},
                                  nn::Relu{}, nn::Linear{6, 3, false, nn::kaiming_uniform}}));
  CHECK(parameters(nn::MultilayerPerceptron<>{{5, 3}}) == parameters(nn::Sequential{nn::Linear{5, 3}}));
  CHECK(nn::MultilayerPerceptron<>{{5, 3}}.leaves() == 1);
  CHECK(nn::input_elements(nn::MultilayerPerceptron<>{{5, 7, 3}}) == 5);
}

TEST_CASE("MultilayerPerceptron in a Sequential has its position as a prefix of parameter names", "[nn]") {
  const auto inner = parameters(nn::Sequential{nn::Tanh{}, nn::MultilayerPerceptron<>{{5, 7, 3}}});
  REQUIRE(inner.size() == 4);
  CHECK(inner[0].first == "1.0.weight");
  CHECK(inner[2].first == "1.2.weight");
  CHECK_THROWS_WITH((nn::Sequential{nn::Linear{4, 6}, nn::MultilayerPerceptron<>{{5, 7, 3}}}), Contains("expects 5 values a sample"));
}

TEST_CASE("MultilayerPerceptron rejects fewer than two widths and a width of 0", "[nn]") {
  CHECK_THROWS_WITH(nn::MultilayerPerceptron<>{{5}}, Contains("was given 1 widths; it takes at least 2, as in {784, 10}"));
  CHECK_THROWS_WITH((nn::MultilayerPerceptron<>{{5, 0, 3}}), Contains("was given a width of 0; each must be at least 1"));
}
