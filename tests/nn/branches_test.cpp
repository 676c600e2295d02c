#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/concat.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/sum.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/gradients.hpp>
#include <pdp/train/task.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace branches_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace strategy = pdp::strategy;
using nn::Concat, nn::Conv2d, nn::JoinedDimension, nn::Linear, nn::Sequential, nn::Sum, nn::Tanh;
using pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// Returns the output of a layer or of a Residual for some samples.
template <class L>
std::vector<double> output(const L& layer, const Shape& input, const std::vector<double>& x, const double* parameters) {
  const Index rows = pdp::as_index(x.size()) / input.elements(), out = layer.output(input).elements();
  std::vector<double> y(pdp::as_size(rows * out), 99), saved(pdp::as_size(rows * layer.saved_elements(input)));
  nn::State<double> state{parameters, nullptr, false};
  state.input = input;
  layer.forward(Cpu{}, state, Matrix<const double>{x.data(), rows, input.elements()}, Matrix<double>{y.data(), rows, out}, saved.data());
  return y;
}

template <class Model>
void check_gradients(const Model& model, const Shape& input) {
  const auto found = pdp::testing::check_gradients<double>(model, input);
  INFO(found.text());
  CHECK(found);
}

template <class Model>
void refused(const Model& model, const Shape& input) {
  nn::check_widths(nn::flow(model, input));
}

}  // namespace

TEST_CASE("Sum adds the outputs of its branches", "[nn][branches]") {
  const Linear a{3, 2}, b{.in = 3, .out = 2, .bias = false};
  const Sum layer{a, Sequential{b, Tanh{}}, Sequential{a, Tanh{}}};
  const auto x = support::normal<double>(5 * 3, 1), parameters = support::normal<double>(layer.parameter_elements(), 2);
  const auto of_a = output(a, Shape{3}, x, parameters.data());
  auto of_b = output(b, Shape{3}, x, parameters.data() + a.parameter_elements());
  auto of_c = output(a, Shape{3}, x, parameters.data() + a.parameter_elements() + b.parameter_elements());
  const auto found = output(layer, Shape{3}, x, parameters.data());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(of_a[i] + std::tanh(of_b[i]) + std::tanh(of_c[i])).epsilon(1e-14));
}

TEST_CASE("Concat puts the outputs of its branches side by side, along the first or the last dimension", "[nn][branches]") {
  const Linear a{3, 2}, b{3, 4};
  const auto x = support::normal<double>(2 * 6, 1);  // two samples of two vectors
  const auto parameters = support::normal<double>(a.parameter_elements() + b.parameter_elements(), 2);
  const auto of_a = output(a, Shape{2, 3}, x, parameters.data());
  const auto of_b = output(b, Shape{2, 3}, x, parameters.data() + a.parameter_elements());
  const Concat last{JoinedDimension::last, a, b};
  CHECK(last.output(Shape{2, 3}) == Shape{2, 6});
  const auto found = output(last, Shape{2, 3}, x, parameters.data());
  for (std::size_t vector = 0; vector < 4; ++vector)
    for (std::size_t i = 0; i < 6; ++i) CHECK(found[vector * 6 + i] == (i < 2 ? of_a[vector * 2 + i] : of_b[vector * 4 + i - 2]));

  const Concat first{a, a};
  CHECK(first.output(Shape{2, 3}) == Shape{4, 2});
  const auto twice = support::normal<double>(2 * a.parameter_elements(), 2);
  const auto other = output(a, Shape{2, 3}, x, twice.data() + a.parameter_elements());
  const auto joined = output(first, Shape{2, 3}, x, twice.data());
  for (std::size_t sample = 0; sample < 2; ++sample)
    for (std::size_t i = 0; i < 8; ++i) CHECK(joined[sample * 8 + i] == (i < 4 ? of_a[sample * 4 + i] : other[sample * 4 + i - 4]));
}

TEST_CASE("Sum and Concat have the gradients of central differences", "[nn][branches]") {
  check_gradients(Sum{Linear{3, 4}, Sequential{Linear{3, 5}, Tanh{}, Linear{5, 4}}}, Shape{3});
  check_gradients(Sum{Tanh{}, Linear{4, 4}, nn::LayerNorm{4}}, Shape{3, 4});
  check_gradients(Concat{Linear{3, 2}, Tanh{}, Sequential{Linear{3, 4}, Tanh{}}}, Shape{3});
  check_gradients(Concat{JoinedDimension::last, Linear{3, 2}, Sequential{Linear{3, 5}, Tanh{}}}, Shape{4, 3});
  check_gradients(Sum{Sum{Linear{3, 3}, Tanh{}}, Concat{Linear{3, 1}, Linear{3, 2}}}, Shape{3});
  check_gradients(nn::Residual{Concat{Conv2d{2, 1, 3, {.padding = 1}}, Conv2d{2, 1, 1}}}, Shape{2, 4, 3});
  check_gradients(Sum{Sequential{Conv2d{2, 3, 3, {.stride = 2, .padding = 1}}, Tanh{}, Conv2d{3, 3, 1}}, Conv2d{2, 3, 1, {.stride = 2}}},
                  Shape{2, 4, 5});
  check_gradients(Concat{Conv2d{2, 3, 3, {.padding = 1}}, Conv2d{2, 1, 1}, nn::MaxPool2d{3, {.stride = 1, .padding = 1}}}, Shape{2, 3, 4});
}

TEST_CASE("Concat of layers of any width neither hides nor fixes the width of a sample", "[nn][branches]") {
  const nn::Residual doubled{Sequential{Concat{nn::Relu{}, Tanh{}}, Linear{20, 10}}};
  CHECK(doubled.output(Shape{10}) == Shape{10});
  CHECK(nn::input_elements(Sequential{Concat{nn::Relu{}, Tanh{}}, Linear{20, 10}}) == 0);
  CHECK(nn::flow(Sequential{Concat{nn::Relu{}, Tanh{}}, Linear{20, 10}}, Shape{10}).shape == Shape{10});
  CHECK(nn::input_elements(Sequential{Sum{nn::Relu{}, Tanh{}}, Linear{20, 10}}) == 20);
  CHECK_THROWS_WITH(refused(Sequential{Concat{nn::Relu{}, Tanh{}}, Linear{20, 10}}, Shape{7}), Contains("(Linear) expects 20 values"));
  check_gradients(doubled, Shape{10});
}

TEST_CASE("Parameters in Sum and Concat have the names of a PyTorch ModuleList", "[nn][branches]") {
  std::vector<std::string> names;
  nn::for_each_leaf(Sequential{Tanh{}, Sum{Linear{3, 3}, Sequential{Tanh{}, Concat{Linear{3, 1}, Linear{3, 2}}}}}, {},
                    [&](const auto& layer, const nn::Path& at) {
                      layer.parameters(at, 0, [&](const nn::Parameter& parameter) { names.push_back(parameter.full_name()); });
                    });
  CHECK(names == std::vector<std::string>{"1.0.weight", "1.0.bias", "1.1.1.0.weight", "1.1.1.0.bias", "1.1.1.1.weight", "1.1.1.1.bias"});
}

TEST_CASE("Sum and Concat refuse branches that do not fit", "[nn][branches]") {
  CHECK_THROWS_WITH(
      (Sum{Linear{3, 4}, Linear{3, 5}}),
      "nn::Sum adds samples of shape [..., 4] from its first branch and of shape [..., 5] from branch 1; the two must be equal");
  CHECK_THROWS_WITH(
      (Sum{Conv2d{2, 3, 3}, Conv2d{2, 3, 1}}.output(Shape{2, 8, 8})),
      "nn::Sum adds samples of shape [3, 6, 6] from its first branch and of shape [3, 8, 8] from branch 1; the two must be equal");
  CHECK_THROWS_WITH((Concat{Conv2d{2, 3, 3}, Conv2d{2, 3, 1}}.output(Shape{2, 8, 8})),
                    "nn::Concat joins samples of shape [3, 6, 6] with those of shape [3, 8, 8] from branch 1; all dimensions but the first "
                    "must be equal");
  CHECK_THROWS_WITH((Concat{JoinedDimension::last, Conv2d{2, 3, 3}, Conv2d{2, 4, 3}}),
                    Contains("nn::Concat joins samples of shape [3, ?, ?] with those of shape [4, ?, ?] from branch 1; all dimensions but "
                             "the last must be equal"));
  CHECK_THROWS_WITH((Sum{Sequential{Linear{3, 4}, Linear{5, 2}}, Linear{3, 2}}), Contains("(Linear) expects 5 values"));
  CHECK_THROWS_WITH(refused(Sequential{Linear{3, 4}, Sum{Linear{5, 4}, Linear{5, 4}}}, Shape{3}),
                    Contains("layer 1 (Sum) expects 5 values"));
  CHECK(nn::flow(Concat{Conv2d{2, 3, 3}, Conv2d{2, 4, 3}}, Shape{}).shape == Shape{7, Shape::any, Shape::any});
  CHECK(nn::flow(Concat{Linear{2, 3}, Linear{2, 4}}, Shape{2}).shape == Shape{7});
}

TEST_CASE("Models with branches have the losses of Single under every strategy", "[nn][branches][equivalence]") {
  const pdp::Task task{Sequential{Linear{8, 12}, Tanh{}, Sum{Sequential{Linear{12, 10}, Tanh{}, Linear{10, 12}}, Linear{12, 12}},
                                  Concat{Sequential{Linear{12, 6}, nn::Dropout{0.1f}}, Sequential{Linear{12, 3}, Tanh{}}}, Linear{9, 4}},
                       pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};
  const auto samples = tasks::samples(250);
  const auto check = [&](const auto& how, int ranks) {
    const auto report = pdp::testing::serial_equivalence<comm::Thread>(task, samples, how, ranks);
    INFO(report.text());
    CHECK(report);
    CHECK(report.strategy().back() < 0.8 * report.strategy().front());
  };
  check(strategy::DataParallel{.accumulate = 2}, 3);
  check(strategy::Zero{.stage = 3}, 2);
  check(strategy::Pipeline<strategy::ZeroBubble>{.micro_batches = 3, .join_weights = 2}, 3);
  check(strategy::Hybrid<>{.mesh = {2, 2, 1}, .micro_batches = 2}, 4);
}

}  // namespace branches_test
