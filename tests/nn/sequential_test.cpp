#include <pdp/nn/sequential.hpp>

#include <string>
#include <vector>

#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>

#include "catch.hpp"
#include "nn/gradient_check.hpp"

namespace nn = pdp::nn;
using nn::Flatten;
using nn::Linear;
using nn::Relu;
using nn::Residual;
using nn::Sequential;
using nn::Tanh;
using pdp::Index;
using pdp::Shape;

namespace {

template <class Model>
std::vector<std::string> parameter_names(const Model& model) {
  std::vector<std::string> names;
  nn::for_each_leaf(model, {}, [&](const auto& layer, const nn::Path& path) {
    layer.parameters(path, 0, [&](const nn::Parameter& parameter) { names.push_back(parameter.full_name()); });
  });
  return names;
}

}  // namespace

TEST_CASE("The gradients of a Sequential equal central differences", "[nn][gradient]") {
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5);
  gradient_check::check_model(Sequential{Linear{7, 5}, Tanh{}, Linear{5, 3}}, Shape{7}, rows);
  gradient_check::check_model(Sequential{Flatten{}, Linear{6, 9}, Relu{}, Linear{.in = 9, .out = 1, .bias = false}}, Shape{2, 3}, rows);
  gradient_check::check_model(Sequential{Tanh{}, Linear{3, 3}, Flatten{}, Tanh{}, Linear{3, 2}, Flatten{}}, Shape{3}, rows);
  gradient_check::check_model(Sequential{Sequential{Linear{3, 4}, Relu{}}, Sequential{Sequential{Linear{4, 1}, Tanh{}}}}, Shape{3}, rows);
}

TEST_CASE("Sequential numbers its parameters as PyTorch's nn.Sequential does", "[nn]") {
  CHECK(parameter_names(Sequential{Linear{4, 3}, Relu{}, Linear{3, 3}, Relu{}, Linear{.in = 3, .out = 2, .bias = false}}) ==
        std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias", "4.weight"});
  const Sequential nested{Flatten{}, Sequential{Linear{4, 3}, Tanh{}}, Sequential{Sequential{Tanh{}, Linear{3, 2}}}};
  CHECK(parameter_names(nested) == std::vector<std::string>{"1.0.weight", "1.0.bias", "2.0.1.weight", "2.0.1.bias"});
  CHECK(parameter_names(Linear{4, 3}) == std::vector<std::string>{"weight", "bias"});
}

TEST_CASE("Sequential rejects widths that do not fit and names the layer and both widths", "[nn]") {
  const auto message = [](Index hidden, Index second) {
    return support::message_of<pdp::ShapeError>([&] { Sequential{Linear{784, hidden}, Relu{}, Linear{second, 10}}; });
  };
  CHECK(!message(64, 64));
  CHECK_THAT(message(64, 65).value(), Contains("layer 2 (Linear)") && Contains("expects 65") && Contains("its input has 64"));
  CHECK_THAT(message(1, 64).value(), Contains("expects 64") && Contains("its input has 1"));
}

TEST_CASE("Sequential checks widths across containers and names the full path of the layer", "[nn]") {
  const auto nested = support::message_of<pdp::ShapeError>([] {
    Sequential{Linear{4, 6}, Tanh{}, Sequential{Relu{}, Sequential{Linear{5, 3}}}};
  });
  CHECK_THAT(nested.value(), Contains("layer 2.1.0 (Linear)") && Contains("expects 5") && Contains("its input has 6"));

  const auto residual = support::message_of<pdp::ShapeError>([] { Sequential{Linear{4, 6}, Residual{Sequential{Tanh{}, Linear{5, 5}}}}; });
  CHECK_THAT(residual.value(), Contains("layer 1 (Residual)") && Contains("expects 5") && Contains("its input has 6"));
}

TEST_CASE("Sequential counts its leaves and computes its widths at compile time", "[nn]") {
  constexpr Sequential mlp{Linear{784, 64}, Relu{}, Linear{64, 64}, Relu{}, Linear{64, 10}};
  static_assert(mlp.leaves() == 5 && nn::input_elements(mlp) == 784 && nn::flow(mlp, Shape{784}).shape == Shape{10});
  SUCCEED();
}

TEST_CASE("Sequential rejects containers nested deeper than 8 levels", "[nn]") {
  const Sequential eight{Sequential{Sequential{Sequential{Sequential{Sequential{Sequential{Sequential{Tanh{}}}}}}}}};
  CHECK(eight.leaves() == 1);
  CHECK_THROWS_AS(Sequential{eight}, pdp::ConfigError);
  CHECK_THROWS_AS((Sequential{Tanh{}, eight}), pdp::ConfigError);
}

TEST_CASE("A Sequential in the braces of another is nested, not copied", "[nn]") {
  const Sequential inner{Linear{4, 3}};
  CHECK(parameter_names(Sequential{inner}) == std::vector<std::string>{"0.0.weight", "0.0.bias"});
  CHECK(parameter_names(Sequential{Sequential{Sequential{Linear{4, 3}}}}) == std::vector<std::string>{"0.0.0.weight", "0.0.0.bias"});
  const Sequential copy = inner;  // NOLINT(performance-unnecessary-copy-initialization): tests the copy
  CHECK(parameter_names(copy) == std::vector<std::string>{"0.weight", "0.bias"});
}
