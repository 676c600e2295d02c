#include <pdp/nn/activation.hpp>

#include "catch.hpp"
#include "nn/gradient_check.hpp"

namespace nn = pdp::nn;
using pdp::Index;
using pdp::Shape;

TEST_CASE("The gradients of Relu and Tanh equal central differences", "[nn][gradient]") {
  const Index width = GENERATE(as<Index>{}, 1, 7, 33), rows = GENERATE(as<Index>{}, 0, 1, 5);
  gradient_check::check_layer(nn::Relu{}, width, rows);
  gradient_check::check_layer(nn::Tanh{}, width, rows);
}

TEST_CASE("Relu and Tanh accept any shape, keep it and have no parameters", "[nn]") {
  static_assert(nn::Relu{}.input_elements() == 0 && nn::Tanh{}.input_elements() == 0);
  static_assert(nn::Relu{}.output(Shape{3, 5}) == Shape{3, 5} && nn::Tanh{}.output(Shape{3, 5}) == Shape{3, 5});
  static_assert(!nn::Relu{}.output(Shape{}).known());
  static_assert(nn::Relu{}.parameter_elements() == 0 && nn::Tanh{}.saved_elements(Shape{7}) == 0);
  SUCCEED();
}

TEST_CASE("Flatten is a view of one row of the same values", "[nn]") {
  static_assert(nn::Flatten{}.output(Shape{1, 28, 28}) == Shape{784} && nn::Flatten{}.output(Shape{7}) == Shape{7});
  static_assert(!nn::Flatten{}.output(Shape{}).known());
  static_assert(nn::is_view<nn::Flatten> && !nn::is_view<nn::Tanh> && nn::Flatten{}.parameter_elements() == 0);
  SUCCEED();
}
