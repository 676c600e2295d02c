#include <pdp/nn/layers.hpp>

#include <string>
#include <vector>

#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"

namespace nn = pdp::nn;
using nn::Linear;
using nn::Repeat;
using nn::Residual;
using nn::Sequential;
using nn::Tanh;

TEST_CASE("Layers::visit passes the leaf of a number to the function once, with its own type and sizes", "[nn]") {
  const Sequential model{Linear{2, 3}, Tanh{}, Repeat{2, Sequential{Residual{Tanh{}}, Linear{3, 3}}}, nn::Relu{}, Linear{3, 9}};
  const nn::Layers<Sequential<Linear, Tanh, Repeat<Sequential<Residual<Tanh>, Linear>>, nn::Relu, Linear>> layers{model};

  std::vector<std::string> paths, seen;
  nn::for_each_leaf(model, {}, [&](const auto&, const nn::Path& path) { paths.push_back(path.str()); });
  for (int number = 0; number < layers.size(); ++number)
    layers.visit(number, [&]<class L>(const L& layer) {
      std::string entry = paths.at(static_cast<std::size_t>(number)) + " " + L::name;
      if constexpr (std::same_as<L, Linear>) entry += " " + std::to_string(layer.out);
      seen.push_back(entry);
    });
  CHECK(seen == std::vector<std::string>{"0 Linear 3", "1 Tanh", "2.0.0 Residual", "2.0.1 Linear 3", "2.1.0 Residual", "2.1.1 Linear 3",
                                         "3 Relu", "4 Linear 9"});
}

TEST_CASE("Layers of a single layer holds that layer", "[nn]") {
  const nn::Layers<Linear> layers{Linear{4, 3}};
  CHECK(layers.size() == 1);
  nn::for_each_leaf(Linear{4, 3}, {}, [&](const auto&, const nn::Path& path) { CHECK(path.str().empty()); });
  int visits = 0;
  layers.visit(0, [&](const Linear& layer) { visits += layer.in == 4 && layer.out == 3 ? 1 : 100; });
  CHECK(visits == 1);
}
