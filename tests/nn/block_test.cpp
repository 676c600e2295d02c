#include <pdp/nn/block.hpp>

#include <string>
#include <vector>

#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"

namespace nn = pdp::nn;
using nn::Flatten;
using nn::Linear;
using nn::Relu;
using nn::Repeat;
using nn::Residual;
using nn::Sequential;
using nn::Tanh;
using pdp::Index;
using pdp::Shape;

TEST_CASE("Block accepts layers and containers and nothing else", "[nn]") {
  static_assert(nn::Layer<Linear> && !nn::Container<Linear> && nn::Block<Linear>);
  static_assert(nn::Layer<Residual<Tanh>> && !nn::Container<Residual<Tanh>>);
  static_assert(nn::Container<Sequential<Linear, Relu>> && !nn::Layer<Sequential<Linear, Relu>>);
  static_assert(nn::Container<Repeat<Linear>> && nn::Block<Repeat<Linear>>);
  static_assert(!nn::Block<int> && !nn::Block<Shape> && !nn::Block<const char*>);
  SUCCEED();
}

TEST_CASE("LeafTypes lists each leaf type once, in the order of first appearance", "[nn]") {
  using Inner = Sequential<Linear, Tanh, Linear>;
  static_assert(std::same_as<nn::LeafTypes<Linear, Inner, Relu, Repeat<Inner>>, nn::TypeList<Linear, Tanh, Relu>>);
  static_assert(std::same_as<nn::LeafTypes<Residual<Linear>, Linear>, nn::TypeList<Residual<Linear>, Linear>>, "a residual is a leaf");
  static_assert(std::same_as<Repeat<Sequential<Relu, Relu>>::Leaves, nn::TypeList<Relu>>);
  SUCCEED();
}

TEST_CASE("nn::leaf finds the same layers by number as nn::for_each_leaf", "[nn]") {
  const Sequential model{Linear{2, 2}, Repeat{3, Sequential{Tanh{}, Linear{2, 2}}}, Sequential{Relu{}, Sequential{Linear{2, 9}}}};
  std::vector<std::string> names, paths;
  nn::for_each_leaf(model, {}, [&]<class L>(const L&, const nn::Path& path) {
    names.emplace_back(L::name);
    paths.push_back(path.str());
  });
  CHECK(names == std::vector<std::string>{"Linear", "Tanh", "Linear", "Tanh", "Linear", "Tanh", "Linear", "Relu", "Linear"});
  CHECK(paths == std::vector<std::string>{"0", "1.0.0", "1.0.1", "1.1.0", "1.1.1", "1.2.0", "1.2.1", "2.0", "2.1.0"});

  REQUIRE(nn::leaves(model) == 9);
  for (Index number = 0; number < 9; ++number) {
    int visits = 0;
    nn::leaf(model, number, [&]<class L>(const L& layer) {
      ++visits;
      CHECK(L::name == names[static_cast<std::size_t>(number)]);
      if constexpr (std::same_as<L, Linear>) CHECK(layer.out == (number == 8 ? 9 : 2));
    });
    CHECK(visits == 1);
  }
  for (const Index outside : {-1, 9, 100}) nn::leaf(model, outside, [&](const auto&) { FAIL("there is no leaf " << outside); });
}

TEST_CASE("input_elements looks through layers that take any width", "[nn]") {
  static_assert(nn::input_elements(Linear{7, 3}) == 7);
  static_assert(nn::input_elements(Sequential{Relu{}, Flatten{}, Linear{7, 3}, Linear{3, 9}}) == 7);
  static_assert(nn::input_elements(Sequential{Residual{Tanh{}}, Sequential{Tanh{}, Linear{7, 3}}}) == 7);
  static_assert(nn::input_elements(Sequential{Relu{}, Tanh{}}) == 0, "any width");
  static_assert(nn::input_elements(Repeat{4, Residual{Linear{7, 7}}}) == 7);
  SUCCEED();
}

TEST_CASE("flow follows a shape to the end, or to the first layer that does not accept it", "[nn]") {
  constexpr nn::Flow through = nn::flow(Sequential{Flatten{}, Linear{784, 64}, Relu{}, Linear{64, 10}}, Shape{1, 28, 28});
  static_assert(through.fits() && through.shape == Shape{10});
  static_assert(nn::flow(Sequential{Relu{}, Tanh{}}, Shape{3, 5}).shape == Shape{3, 5});
  static_assert(!nn::flow(Relu{}, Shape{}).shape.known());

  const nn::Flow wrong = nn::flow(Sequential{Relu{}, Linear{784, 64}}, Shape{783});
  CHECK(!wrong.fits());
  CHECK(wrong.misfit.expected == 784);
  CHECK(wrong.misfit.found == 783);
  CHECK(wrong.at.str() == "1");
  CHECK(std::string{wrong.layer} == "Linear");
  CHECK(std::string{wrong.before} == "Relu");
}
