#include <pdp/checkpoint/perceptron_widths.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/stage.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace perceptron_widths_test {

namespace checkpoint = pdp::checkpoint;
namespace nn = pdp::nn;
using pdp::Index;
using Tensors = std::vector<checkpoint::Tensor>;

namespace {

checkpoint::Tensor weight(const char* name, std::vector<Index> shape) { return {name, std::move(shape), {}, {}}; }

}  // namespace

TEST_CASE("perceptron_widths finds the widths whatever the order of the tensors", "[checkpoint]") {
  const std::vector<Index> widths{5, 4, 3, 2};
  const nn::MultilayerPerceptron model{widths};
  nn::Stage<nn::LeafTypes<nn::MultilayerPerceptron<>>, pdp::cpu::Cpu, float> stage{model, pdp::Shape{5}, {{0, 5}}, 1};
  Tensors tensors = checkpoint::export_parameters(stage);
  CHECK(checkpoint::perceptron_widths(tensors, "a file") == widths);
  std::reverse(tensors.begin(), tensors.end());
  CHECK(checkpoint::perceptron_widths(tensors, "a file") == widths);
}

TEST_CASE("perceptron_widths rejects tensors that do not form a perceptron", "[checkpoint]") {
  CHECK_THROWS_WITH(checkpoint::perceptron_widths({}, "a file"), StartsWith("a file: expected a tensor '0.weight'"));
  for (const Tensors& tensors : {Tensors{weight("0.weight", {4, 5}), weight("2.weight", {3, 5})}, Tensors{weight("0.weight", {4, 5, 1})},
                                 Tensors{weight("0.weight", {4, 5}), weight("2.weight", {3})}}) {
    CHECK_THROWS_AS(checkpoint::perceptron_widths(tensors, "a file"), pdp::FileError);
    CHECK_THROWS_WITH(checkpoint::perceptron_widths(tensors, "a file"), Contains("to be a matrix [outputs, inputs]"));
  }
}

}  // namespace perceptron_widths_test
