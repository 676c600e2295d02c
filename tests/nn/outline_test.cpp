#include <pdp/nn/outline.hpp>

#include <algorithm>
#include <vector>

#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/sum.hpp>

#include "catch.hpp"
#include "support.hpp"

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

std::vector<bool> passes(const nn::Outline& outline) {
  std::vector<bool> found;
  for (int layer = 0; layer < outline.size(); ++layer) found.push_back(outline.passes_gradient(layer));
  return found;
}

}  // namespace

TEST_CASE("Outline lists the width at each boundary and the sizes that each layer holds and saves", "[nn]") {
  const Residual residual{Sequential{Linear{64, 3}, Tanh{}, Linear{3, 64}}};
  const nn::Outline outline = nn::outline(Sequential{Flatten{}, Linear{784, 64}, Relu{}, residual, Linear{64, 10}}, Shape{1, 28, 28});
  REQUIRE(outline.size() == 5);
  std::vector<Index> widths, parameters, saved;
  for (int boundary = 0; boundary <= 5; ++boundary) widths.push_back(outline.width(boundary));
  for (const auto& layer : outline.layers) {
    parameters.push_back(layer.parameters);
    saved.push_back(layer.saved);
  }
  CHECK(widths == std::vector<Index>{784, 784, 64, 64, 64, 10});
  CHECK(parameters == std::vector<Index>{0, 784 * 64 + 64, 0, 192 + 16 + 192 + 64, 640 + 16});
  CHECK(saved == std::vector<Index>{0, 0, 0, 2 * (3 + 3 + 64), 0});
  for (int layer = 0; layer < 5; ++layer) CHECK(outline.layers[static_cast<std::size_t>(layer)].is_view == (layer == 0));
}

TEST_CASE("Outline counts the products of a sample, also those of parameters that are used several times", "[nn]") {
  using nn::Conv2d;
  const auto products = [](const auto& model, const Shape& input) {
    std::vector<Index> all;
    for (const auto& layer : nn::outline(model, input).layers) all.push_back(layer.products);
    return all;
  };
  CHECK(products(Sequential{Linear{8, 16}, Tanh{}}, Shape{8}) == std::vector<Index>{8 * 16 + 16, 0});
  CHECK(products(Sequential{Linear{8, 16}, Tanh{}}, Shape{5, 8}) == std::vector<Index>{5 * (8 * 16 + 16), 0});
  const nn::Divided divided{Sequential{Linear{8, 16}, Tanh{}, Linear{16, 4}}, nn::Part{0, 2}, nn::Output::whole};
  const std::vector<Index> of_parts = products(divided, Shape{5, 8});
  CHECK(std::ranges::count(of_parts, 5 * (8 * 8 + 16)) == 1);
  CHECK(std::ranges::count(of_parts, 5 * (8 * 4 + 16)) == 1);
  CHECK(products(Sequential{Conv2d{2, 6, 3, {.groups = 2}}, Residual{Conv2d{6, 6, 1}}, nn::Sum{Conv2d{6, 4, 1}, Conv2d{6, 4, 1}}},
                 Shape{2, 7, 6}) == std::vector<Index>{6 * 9 * 20, 36 * 20, 2 * 24 * 20});
}

TEST_CASE("nn::outline takes the width of the sample for a model of any width", "[nn]") {
  for (const Index width : {1, 7, 784}) {
    const nn::Outline outline = nn::outline(Sequential{Relu{}, Residual{Tanh{}}}, Shape{width});
    CHECK(outline.width(0) == width);
    CHECK(outline.width(2) == width);
    CHECK(outline.layers[1].saved == 2 * width);
  }
}

TEST_CASE("nn::outline rejects a sample that the model does not accept, with layer and widths", "[nn]") {
  const auto message = support::message_of<pdp::ShapeError>([] { (void)nn::outline(Sequential{Tanh{}, Linear{784, 10}}, Shape{28, 27}); });
  CHECK_THAT(message.value(), Contains("layer 1 (Linear)") && Contains("expects 784") && Contains("its input has 756"));
}

TEST_CASE("passes_gradient is true for layers behind parameters and for a Residual with parameters", "[nn]") {
  CHECK(passes(nn::outline(Sequential{Linear{4, 3}, Relu{}, Linear{3, 2}}, Shape{4})) == std::vector<bool>{false, true, true});
  CHECK(passes(nn::outline(Sequential{Flatten{}, Tanh{}, Linear{4, 3}, Relu{}}, Shape{2, 2})) ==
        std::vector<bool>{false, false, false, true});
  CHECK(passes(nn::outline(Sequential{Tanh{}, Residual{Linear{4, 4}}, Linear{4, 1}}, Shape{4})) == std::vector<bool>{false, true, true});
  CHECK(passes(nn::outline(Residual{Linear{4, 4}}, Shape{4})) == std::vector<bool>{true});
}

TEST_CASE("Outline counts each leaf of a Repeat as a layer", "[nn]") {
  const Index depth = GENERATE(as<Index>{}, 1, 3, 100);
  const nn::Outline outline = nn::outline(nn::Repeat{depth, Sequential{Linear{4, 4}, Tanh{}}}, Shape{4});
  CHECK(outline.size() == 2 * depth);
  CHECK(outline.layers.back().parameters == 0);
  CHECK(outline.layers.front().parameters == 32);
}
