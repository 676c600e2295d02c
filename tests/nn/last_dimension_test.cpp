// Layers that act on the last dimension of samples with several dimensions.

#include <cstddef>
#include <string>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/all_layers.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/testing/gradients.hpp>

#include "catch.hpp"

namespace last_dimension_test {

namespace nn = pdp::nn;
using nn::Linear, nn::Relu, nn::Residual, nn::Sequential, nn::Tanh;
using pdp::Index, pdp::Matrix, pdp::Shape;

TEST_CASE("Reshape gives the same values another shape, and refuses samples of another size", "[nn]") {
  using pdp::nn::Reshape;
  const pdp::nn::Sequential model{pdp::nn::Linear{3, 12}, Reshape{2, 3, 2}, pdp::nn::Flatten{}, Reshape{pdp::Shape{4, 3}}};
  CHECK(pdp::nn::flow(model, pdp::Shape{3}).shape == pdp::Shape{4, 3});
  CHECK(pdp::nn::flow(Reshape{1, 28, 28}, pdp::Shape{}).shape == pdp::Shape{1, 28, 28});
  CHECK_THROWS_WITH(pdp::nn::check_widths(pdp::nn::flow(pdp::nn::Sequential{pdp::nn::Linear{3, 12}, Reshape{2, 5}}, pdp::Shape{3})),
                    Contains("layer 1 (Reshape) expects 10 values a sample, but its input has 12 (shape [12], the output of Linear)"));
  CHECK(pdp::testing::check_gradients<double>(model, pdp::Shape{3}));
  CHECK_THROWS_WITH((Reshape{-1, 28}), "nn::Reshape was given the shape [-1, 28]; all extents must be 1 or more");
  CHECK_THROWS_AS((Reshape{0}), pdp::ConfigError);
  CHECK_THROWS_AS((Reshape{pdp::Shape::any, 28}), pdp::ConfigError);
  CHECK_THROWS_AS((Reshape{pdp::Shape{}}), pdp::ConfigError);
}

TEST_CASE("Linear acts on the last dimension of a sample of any shape", "[nn]") {
  static_assert(Linear{7, 3}.output(Shape{5, 7}) == Shape{5, 3} && Linear{7, 3}.output(Shape{2, 5, 7}) == Shape{2, 5, 3});
  static_assert(Linear{7, 3}.output(Shape{Shape::any, 7}) == Shape{Shape::any, 3});
  static_assert(Linear{35, 3}.output(Shape{5, 7}) == Shape{3}, "a sample with as many values is one vector");
  const Linear layer{2, 3};
  std::vector<float> parameters(static_cast<std::size_t>(layer.parameter_elements()));
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = static_cast<float>(i % 5) - 2;
  const std::vector<float> x{1, 2, -3, 4, 5, -6, 7, 8, -9, 10, 11, 12};
  std::vector<float> y(18), alone(18);
  const auto forward = [&](Index rows, std::vector<float>& to) {
    layer.forward(pdp::cpu::Cpu{}, nn::State<float>{parameters.data(), nullptr, false}, Matrix<const float>{x.data(), rows, 12 / rows},
                  Matrix<float>{to.data(), rows, 18 / rows}, static_cast<float*>(nullptr));
  };
  forward(6, alone);
  for (const Index rows : {1, 2, 3}) {
    forward(rows, y);
    CHECK(y == alone);
  }
}

TEST_CASE("Layers on the last dimension have the gradients of central differences", "[nn]") {
  const auto model =
      Sequential{Linear{3, 5}, Tanh{},        Residual{Sequential{Linear{5, 4, false}, Tanh{}, nn::Dropout{0.25f}, Linear{4, 5}}},
                 Linear{5, 1}, nn::Flatten{}, Linear{6, 2}};
  for (const Shape& input : {Shape{6, 3}, Shape{2, 3, 3}, Shape{1, 6, 1, 3}}) {
    const auto found = pdp::testing::check_gradients(model, input);
    INFO(text(input) << ": " << found.text());
    CHECK(found);
  }
}

TEST_CASE("flow says which layer does not take which dimension", "[nn]") {
  const auto message = [](const auto& model, const Shape& input) -> std::string {
    try {
      nn::check_widths(nn::flow(model, input));
    } catch (const pdp::ShapeError& error) {
      return error.what();
    }
    return {};
  };
  CHECK(message(Sequential{Relu{}, Linear{7, 3}}, Shape{5, 7}).empty());
  CHECK_THAT(message(Sequential{Relu{}, Linear{7, 3}}, Shape{5, 8}),
             Contains("layer 1 (Linear) expects 7 values in the last dimension, but its input has 8 (shape [5, 8], the output of Relu)"));
  CHECK_THAT(message(Linear{7, 3}, Shape{8}), Contains("(Linear) expects 7 values a sample, but its input has 8 (shape [8])"));
  CHECK_THAT(message(Sequential{Relu{}, Residual{Sequential{Linear{7, 7}, Relu{}}}}, Shape{5, 6}),
             Contains("layer 1 (Residual) expects 7"));
  static_assert(!nn::flow(Sequential{Linear{4, 8}, Relu{}}, Shape{3, 4}).misfit);
  // A shape that is known in part is refused only if no such shape fits.
  static_assert(!nn::misfit(Linear{7, 3}, Shape{}) && !nn::misfit(Linear{7, 3}, Shape{4, Shape::any}));
  static_assert(nn::misfit(Linear{7, 3}, Shape{Shape::any, 8}) && nn::misfit(Linear{7, 3}, Shape{Shape::leading, 8}));
  CHECK(nn::outline(Sequential{Linear{4, 8}, Relu{}}, Shape{3, 4}).layers[1].input == Shape{3, 8});
}

TEST_CASE("Vectors whose columns are divided over ranks are not joined to one vector", "[nn]") {
  constexpr Sequential flat{nn::Replicate{}, nn::ColumnParallel{4, 8}, nn::Flatten{}, nn::RowParallel{24, 2}, nn::AllReduce{}};
  const auto outline = [](const auto& model, const Shape& input) {
    return nn::outline(nn::Divided{model, {0, 2}, nn::Output::whole}, input);
  };
  CHECK_THROWS_WITH(outline(flat, Shape{3, 4}), Contains("(Flatten)") && Contains("sharded"));
  static_assert(!nn::misfit(nn::RowParallel{24, 2}, Shape{3, 8}));
  CHECK(nn::misfit(nn::RowParallel{24, 2}.divided({0, 2}, {}), Shape{3, 4}).of != nullptr);
  // The division that pdp chooses leaves such layers whole.
  CHECK(outline(Sequential{Linear{4, 8}, Linear{8, 8}, nn::Flatten{}, Linear{24, 2}}, Shape{3, 4}).output == Shape{2});
  CHECK_THROWS_WITH(outline(Sequential{Linear{4, 8}, nn::Flatten{}, Linear{24, 2}}, Shape{3, 4}), Contains("none of them"));
}

TEST_CASE("A model with layers on the last dimension may be constant if its widths fit", "[nn]") {
  constexpr Sequential model{Linear{4, 8}, Residual{Sequential{Linear{8, 16}, Relu{}, Linear{16, 8}}}, nn::Flatten{}, Linear{40, 2}};
  static_assert(nn::flow(model, Shape{5, 4}).shape == Shape{2});
  static_assert(nn::input_elements(model) == 4);
  CHECK(nn::outline(model, Shape{5, 4}).width(1) == 40);
}

}  // namespace last_dimension_test
