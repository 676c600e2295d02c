#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/concat.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/frozen.hpp>
#include <pdp/nn/layer_info.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/reshape.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/nn/sum.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "gradient_check.hpp"
#include "support.hpp"

namespace frozen_test {

namespace nn = pdp::nn;
using pdp::Index, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// Returns "name" of each parameter of a model, or "name!" if it is frozen.
template <class Model>
std::vector<std::string> names(const Model& model) {
  std::vector<std::string> all;
  for (const nn::LayerParameter& each : nn::parameters_of(model))
    all.push_back(each.parameter.full_name() + (each.parameter.layer.is_frozen() ? "!" : ""));
  return all;
}
using Names = std::vector<std::string>;

constexpr nn::BatchNorm norm{.channels = 4};

/// Returns the central difference of a model's output, weighted, in the parameters that are not frozen; and the gradient that backward
/// computes in a step. The running statistics of a BatchNorm are not the initial ones, and a frozen one computes with them.
template <class Model>
std::pair<std::vector<double>, std::vector<double>> gradients(const Model& model, Index rows) {
  nn::Stage<nn::LeafTypes<Model>, Cpu, double> stage{model, Shape{4}, {{0, static_cast<int>(nn::leaves(model))}}, /*seed*/ 7};
  gradient_check::Batch<Model> batch{stage, rows};
  batch.train();
  std::vector<double> expected;
  stage.for_each_parameter([](const nn::Parameter& parameter, std::span<double> values) {
    if (!parameter.is_buffer) return;
    for (double& value : values) value = 0.5 + value / 4 + static_cast<double>(values.size()) / 10;
  });
  stage.for_each_parameter([&](const nn::Parameter& parameter, std::span<double> values) {
    if (parameter.layer.is_frozen()) {
      expected.insert(expected.end(), values.size(), 99);
    } else {
      const auto found = gradient_check::differences(values, [&] { return batch.forward(); });
      expected.insert(expected.end(), found.begin(), found.end());
    }
  });
  std::ranges::fill(stage.gradients(0), 99);
  batch.forward();
  batch.backward(false);
  return {gradient_check::parameter_gradients(stage), expected};
}

}  // namespace

TEST_CASE("Frozen keeps the names of its parameters and marks them", "[nn][frozen]") {
  using namespace nn;
  CHECK(names(Sequential{Frozen{Linear{4, 4}}, Linear{4, 2}}) == Names{"0.weight!", "0.bias!", "1.weight", "1.bias"});
  CHECK(names(Frozen{Sequential{Linear{4, 4}, Residual{Linear{4, 4}}}}) == Names{"0.weight!", "0.bias!", "1.0.weight!", "1.0.bias!"});
  CHECK(names(Residual{Sequential{Linear{4, 4}, Frozen{Linear{4, 4}}}}) == Names{"0.weight", "0.bias", "1.weight!", "1.bias!"});
  CHECK(names(Residual{Frozen{Linear{4, 4}}}) == Names{"0.weight!", "0.bias!"});
  CHECK(names(Frozen{Linear{4, 4}}) == Names{"weight!", "bias!"});
}

TEST_CASE("A divided model is frozen where the whole one is", "[nn][frozen][tensor]") {
  using namespace nn;
  const Sequential model{Frozen{Sequential{Linear{4, 8}, Tanh{}, Linear{8, 4}}}, Residual{Sequential{Linear{4, 8}, Frozen{Linear{8, 4}}}}};
  const Divided own{model, {0, 2}, Output::whole};
  CHECK(names(own) == names(model));
  const Outline outline = nn::outline(own, Shape{4});
  CHECK(std::ranges::count_if(outline.layers, &Outline::Layer::is_frozen) == 5);  // with the exchanges around the two Linear
}

TEST_CASE("An outline says which layers are trained and pass gradients on", "[nn][frozen]") {
  using namespace nn;
  static constexpr Sequential model{Linear{4, 4}, Frozen{Sequential{Linear{4, 4}, Dropout{0.5f}}}, Tanh{}, Linear{4, 2}};
  const Outline outline = nn::outline(model, Shape{4});
  const auto of_each = [&](auto&& f) {
    std::vector<bool> all;
    for (int layer = 0; layer < outline.size(); ++layer) all.push_back(f(layer));
    return all;
  };
  CHECK(of_each([&](int layer) { return outline.trains(layer); }) == std::vector{true, false, false, false, true});
  CHECK(of_each([&](int layer) { return outline.passes_gradient(layer); }) == std::vector{false, true, true, true, true});
  CHECK(of_each([&](int layer) { return outline.is_frozen(layer, layer + 1); }) == std::vector{false, true, false, false, false});
  CHECK(outline.is_frozen(1, 4));
  CHECK_FALSE(outline.is_frozen(1, 5));
  const Outline backbone = nn::outline(Sequential{Frozen{Linear{4, 4}}, Linear{4, 4}, Linear{4, 2}}, Shape{4});
  CHECK_FALSE(backbone.passes_gradient(1));
  CHECK(backbone.passes_gradient(2));
}

TEST_CASE("layer_infos counts frozen elements", "[nn][frozen]") {
  const auto infos = nn::layer_infos(nn::Sequential{nn::Frozen{norm}, nn::Residual{nn::Sequential{nn::Linear{4, 4}, nn::Frozen{norm}}}});
  CHECK((infos[0].frozen == 16 && infos[0].buffers == 8 && infos[0].parameters == 16));
  CHECK((infos[1].frozen == 16 && infos[1].parameters == 36));
}

TEST_CASE("Backward passes through frozen layers and leaves their gradients alone", "[nn][frozen]") {
  using namespace nn;
  const auto check = [](const auto& model) {
    const auto [found, expected] = gradients(model, 5);
    CHECK(support::difference(found, expected) < gradient_check::tolerance);
  };
  check(Sequential{Linear{4, 4}, Frozen{Linear{4, 4}}, Tanh{}, Linear{4, 2}});
  check(Sequential{Linear{4, 4}, Frozen{norm}, Tanh{}, Frozen{Residual{Sequential{Linear{4, 4}, norm, Tanh{}}}}, Linear{4, 2}});
  check(Sequential{Linear{4, 4}, Residual{Sequential{Linear{4, 4}, Frozen{Linear{4, 4}}, Tanh{}}}, Linear{4, 2}});
  check(Sequential{Frozen{Sequential{Linear{4, 4}, Tanh{}}}, Linear{4, 2}});
  check(Sequential{Linear{4, 4},
                   Frozen{Sequential{Dropout{0.5f}, Sum{Sequential{Linear{4, 4}, norm, Tanh{}}, Sequential{norm, Linear{4, 4}}}}},
                   Linear{4, 2}});
  check(Sequential{Linear{4, 4}, Frozen{Residual{Sum{Sequential{norm, Tanh{}}, Linear{4, 4}}}}, Linear{4, 2}});
  check(Sequential{Reshape{1, 2, 2}, Conv2d{1, 4, 1}, Frozen{Concat{Sequential{norm, Tanh{}}, norm}}, Flatten{}, Linear{32, 2}});
  check(
      Sequential{Linear{4, 4}, Residual{Sequential{Linear{4, 4}, Frozen{Dropout{0.5f}}, Frozen{Sum{Linear{4, 4}, Tanh{}}}}}, Linear{4, 2}});
}

}  // namespace frozen_test
