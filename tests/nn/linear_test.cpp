#include <pdp/nn/linear.hpp>

#include <string>
#include <vector>

#include "catch.hpp"
#include "nn/gradient_check.hpp"

namespace nn = pdp::nn;
using nn::Linear;
using pdp::Index;
using pdp::Matrix;
using pdp::Shape;
using pdp::cpu::Cpu;

namespace {

std::vector<nn::Parameter> parameters_of(const Linear& layer, Index offset = 0) {
  std::vector<nn::Parameter> found;
  layer.parameters(nn::Path{}.child(2), offset, [&](const nn::Parameter& parameter) { found.push_back(parameter); });
  return found;
}

}  // namespace

TEST_CASE("The gradients of Linear equal central differences", "[nn][gradient]") {
  const Index in = GENERATE(as<Index>{}, 1, 3, 17), out = GENERATE(as<Index>{}, 1, 5, 16), rows = GENERATE(as<Index>{}, 0, 1, 5);
  gradient_check::check_layer(Linear{in, out}, in, rows);
  gradient_check::check_layer(Linear{.in = in, .out = out, .bias = false}, in, rows);
}

TEST_CASE("Linear computes x W + b with W as [in, out] and b at its described offset", "[nn]") {
  const Linear layer{2, 3};
  std::vector<float> parameters(static_cast<std::size_t>(layer.parameter_elements()));
  const auto described = parameters_of(layer);
  const std::vector<float> weight{1, 2, 3, 4, 5, 6}, bias{100, 200, 300}, x{1, 0, 0, 1, 2, -1};
  std::ranges::copy(weight, parameters.begin() + described[0].offset);
  std::ranges::copy(bias, parameters.begin() + described[1].offset);
  std::vector<float> y(9);
  layer.forward(Cpu{}, nn::State<float>{parameters.data(), nullptr, false}, Matrix<const float>{x.data(), 3, 2},
                Matrix<float>{y.data(), 3, 3}, static_cast<float*>(nullptr));
  CHECK(y == std::vector<float>{101, 202, 303, 104, 205, 306, 98, 199, 300});
}

TEST_CASE("Linear keeps the widths of its construction for every shape of a sample", "[nn]") {
  static_assert(Linear{784, 64}.input_elements() == 784);
  static_assert(Linear{784, 64}.output(Shape{784}) == Shape{64} && Linear{784, 64}.output(Shape{1, 28, 28}) == Shape{64});
  static_assert(Linear{784, 64}.output(Shape{}) == Shape{Shape::leading, 64}, "the last extent is known even if the input shape is not");
  CHECK(Linear{784, 64}.saved_elements(Shape{784}) == 0);
}

TEST_CASE("Linear describes the names, offsets, file shapes and fans of its parameters", "[nn]") {
  const auto both = parameters_of(Linear{3, 5}, /*offset*/ 32);
  REQUIRE(both.size() == 2);
  CHECK(both[0].full_name() == "2.weight");
  CHECK(both[0].offset == 32);
  CHECK(both[0].elements() == 15);
  CHECK(both[0].file_shape() == std::vector<Index>{5, 3});
  CHECK(both[1].full_name() == "2.bias");
  CHECK(both[1].offset == 48);
  CHECK(both[1].elements() == 5);
  CHECK(both[1].file_shape() == std::vector<Index>{5});
  for (const nn::Parameter& parameter : both) CHECK((parameter.fan_in == 3 && parameter.fan_out == 5));

  CHECK(parameters_of(Linear{.in = 3, .out = 5, .bias = false}).size() == 1);
}

TEST_CASE("Linear counts its parameters with padding, and they lie within that count", "[nn]") {
  static_assert(Linear{3, 5}.parameter_elements() == 32 && Linear{4, 4}.parameter_elements() == 32);
  static_assert(Linear{.in = 17, .out = 1, .bias = false}.parameter_elements() == 32);
  for (const Index in : {1, 4, 16, 17, 100})
    for (const Index out : {1, 4, 16, 17}) {
      const Linear layer{in, out};
      for (const nn::Parameter& parameter : parameters_of(layer)) {
        CHECK(parameter.offset % nn::parameter_block == 0);
        CHECK(parameter.offset + parameter.elements() <= layer.parameter_elements());
      }
    }
}
