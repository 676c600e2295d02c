#include <pdp/nn/residual.hpp>

#include <string>
#include <vector>

#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"
#include "nn/gradient_check.hpp"

namespace nn = pdp::nn;
using nn::Linear;
using nn::Relu;
using nn::Repeat;
using nn::Residual;
using nn::Sequential;
using nn::Tanh;
using pdp::Index;
using pdp::Matrix;
using pdp::Shape;
using pdp::cpu::Cpu;

TEST_CASE("The gradients of a Residual equal central differences", "[nn][gradient]") {
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5);
  gradient_check::check_layer(Residual{Tanh{}}, 5, rows);
  gradient_check::check_layer(Residual{Relu{}}, 5, rows);
  gradient_check::check_layer(Residual{Linear{5, 5}}, 5, rows);
  gradient_check::check_layer(Residual{Sequential{Linear{5, 7}, Tanh{}, Linear{.in = 7, .out = 5, .bias = false}}}, 5, rows);
  gradient_check::check_layer(Residual{Sequential{Relu{}, Linear{1, 3}, Linear{3, 1}, Tanh{}}}, 1, rows);
}

TEST_CASE("The gradients of nested Residuals and Repeats equal central differences", "[nn][gradient]") {
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5), depth = GENERATE(as<Index>{}, 1, 3);
  const Sequential bottleneck{Linear{5, 2}, Tanh{}, Linear{2, 5}};
  gradient_check::check_layer(Residual{Residual{bottleneck}}, 5, rows);
  gradient_check::check_layer(Residual{Repeat{depth, bottleneck}}, 5, rows);
  gradient_check::check_layer(Residual{Repeat{depth, Residual{bottleneck}}}, 5, rows);
  gradient_check::check_layer(Residual{Sequential{Residual{Linear{5, 5}}, Linear{5, 6}, Residual{Residual{Tanh{}}}, Linear{6, 5}}}, 5,
                              rows);
  gradient_check::check_model(Sequential{Linear{3, 5}, Repeat{depth, Residual{Repeat{2, Residual{bottleneck}}}}, Relu{}, Linear{5, 2}},
                              Shape{3}, rows);
}

TEST_CASE("Residual adds its input to the output of its block", "[nn]") {
  const Residual layer{Relu{}};
  const std::vector<float> x{-3, 2, 0.5f};
  std::vector<float> y(3), saved(static_cast<std::size_t>(layer.saved_elements(Shape{3})));
  layer.forward(Cpu{}, nn::State<float>{}, Matrix<const float>{x.data(), 1, 3}, Matrix<float>{y.data(), 1, 3}, saved.data());
  CHECK(y == std::vector<float>{-3, 4, 1});
}

TEST_CASE("A Residual in the braces of another is nested, not copied", "[nn]") {
  static_assert(std::same_as<decltype(Residual{Residual{Tanh{}}}), Residual<Residual<Tanh>>>);
  const Residual inner{Relu{}};
  const Residual layer{inner};
  const std::vector<float> x{-3, 2};
  std::vector<float> y(2), saved(static_cast<std::size_t>(layer.saved_elements(Shape{2})));
  layer.forward(Cpu{}, nn::State<float>{}, Matrix<const float>{x.data(), 1, 2}, Matrix<float>{y.data(), 1, 2}, saved.data());
  CHECK(y == std::vector<float>{-6, 6});  // x + (x + relu(x))

  const Residual copy = inner;
  static_assert(std::same_as<decltype(copy), const Residual<Relu>>);
}

TEST_CASE("Residual is one leaf, and its parameters keep the numbers of its block", "[nn]") {
  static_assert(nn::Layer<Residual<Sequential<Linear, Tanh>>> && nn::leaves(Sequential{Residual{Sequential{Tanh{}, Linear{3, 3}}}}) == 1);
  const auto names = [](const auto& model) {
    std::vector<std::string> found;
    nn::for_each_leaf(model, {}, [&](const auto& layer, const nn::Path& path) {
      layer.parameters(path, 0, [&](const nn::Parameter& parameter) { found.push_back(parameter.full_name()); });
    });
    return found;
  };
  const Linear plain{.in = 3, .out = 3, .bias = false};
  CHECK(names(Sequential{Tanh{}, Residual{Sequential{plain, Tanh{}, plain}}}) == std::vector<std::string>{"1.0.weight", "1.2.weight"});
  CHECK(names(Sequential{Tanh{}, Residual{plain}}) == std::vector<std::string>{"1.0.weight"});
  CHECK(names(Sequential{Residual{Repeat{2, Sequential{plain, Tanh{}}}}}) == std::vector<std::string>{"0.0.0.weight", "0.1.0.weight"});
  CHECK(names(Residual{Residual{plain}}) == std::vector<std::string>{"0.0.weight"});
}

TEST_CASE("The parameters of a Residual lie one after another and fill its parameter count", "[nn]") {
  const Residual layer{Sequential{Linear{5, 7}, Residual{Linear{7, 7}}, Linear{7, 5}}};
  Index end = 100;
  layer.parameters(nn::Path{}, /*offset*/ 100, [&](const nn::Parameter& parameter) {
    CHECK(parameter.offset == end);
    end += nn::padded_parameter(parameter.elements());
  });
  CHECK(end == 100 + layer.parameter_elements());
}

TEST_CASE("Residual rejects a block that changes the width", "[nn]") {
  const auto message = [](Index out) {
    return support::message_of<pdp::ShapeError>([&] { Residual{Sequential{Linear{8, 4}, Linear{4, out}}}; });
  };
  CHECK(!message(8));
  CHECK_THAT(message(9).value(), Contains("takes 8 values") && Contains("gives 9"));

  const auto inside = support::message_of<pdp::ShapeError>([] { Residual{Sequential{Linear{8, 4}, Linear{5, 8}}}; });
  CHECK_THAT(inside.value(), Contains("layer 1 (Linear)") && Contains("expects 5") && Contains("its input has 4"));
}

TEST_CASE("Residual keeps the shape of its input and takes the width of its block", "[nn]") {
  static_assert(Residual{Tanh{}}.output(Shape{3, 5}) == Shape{3, 5} && Residual{Tanh{}}.input_elements() == 0);
  static_assert(Residual{Linear{8, 8}}.input_elements() == 8 && Residual{Sequential{Tanh{}, Linear{8, 8}}}.input_elements() == 8);
  static_assert(Residual{Linear{6, 6}}.output(Shape{2, 3}) == Shape{2, 3});
  CHECK_THROWS_AS((Residual{Linear{6, 6}}.output(Shape{7})), pdp::ShapeError);
}
