#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/stage.hpp>

#include "catch.hpp"
#include "support.hpp"

/// Compares gradients with central differences in double. The differentiated function is the sum of c y, with outputs y and fixed random
/// numbers c. So c is the gradient of y, and every entry of a layer's Jacobian counts.
///
/// All output memory holds NaN at first, which exposes elements that are not written. Sizes are exact, so that a sanitizer finds overruns.
namespace gradient_check {

using pdp::Index;
using pdp::Matrix;
using pdp::cpu::Cpu;

constexpr double nothing_yet = std::numeric_limits<double>::quiet_NaN();
constexpr double width_of_difference = 1e-5, tolerance = 1e-8;

inline std::vector<double> unwritten(Index elements) { return std::vector<double>(static_cast<std::size_t>(elements), nothing_yet); }

inline double weighted_sum(const std::vector<double>& c, const double* y) {
  double sum = 0;
  for (std::size_t i = 0; i < c.size(); ++i) sum += c[i] * y[i];
  return sum;
}

/// Returns the central difference of f() for each of `values`, which f() reads.
template <class F>
std::vector<double> differences(std::span<double> values, F&& f) {
  std::vector<double> gradient;
  for (double& value : values) {
    const double kept = value;
    value = kept + width_of_difference;
    const double above = f();
    value = kept - width_of_difference;
    const double below = f();
    value = kept;
    gradient.push_back((above - below) / (2 * width_of_difference));
  }
  return gradient;
}

/// Returns the positions of the elements of a layer's parameters, without the padding between them.
template <class L>
std::vector<std::size_t> parameter_places(const L& layer) {
  std::vector<std::size_t> places;
  layer.parameters(pdp::nn::Path{}, 0, [&](const pdp::nn::Parameter& parameter) {
    for (Index i = 0; i < parameter.elements(); ++i) places.push_back(static_cast<std::size_t>(parameter.offset + i));
  });
  return places;
}

inline std::vector<double> at(const std::vector<double>& values, const std::vector<std::size_t>& places) {
  std::vector<double> found;
  for (const std::size_t place : places) found.push_back(values[place]);
  return found;
}

/// Checks a single layer, called directly on memory of the test.
template <pdp::nn::Layer L>
void check_layer(const L& layer, Index width, Index rows) {
  INFO(L::name << " of width " << width << ", " << rows << " rows");
  static_assert(pdp::nn::LayerOn<L, Cpu, double> && pdp::nn::LayerOn<L, Cpu, float>);
  const pdp::Shape input{width};
  const Index out = layer.output(input).elements();
  auto x = support::normal<double>(rows * width, 1), parameters = support::normal<double>(layer.parameter_elements(), 2);
  const auto c = support::normal<double>(rows * out, 3);
  auto y = unwritten(rows * out), saved = unwritten(rows * layer.saved_elements(input));
  const Matrix<const double> in{x.data(), rows, width}, read_y{y.data(), rows, out}, gradient_y{c.data(), rows, out};

  // forward and backward_input need no gradients of parameters.
  const pdp::nn::State<double> values_only{parameters.data(), nullptr, false};
  const auto forward = [&] {
    layer.forward(Cpu{}, values_only, in, Matrix<double>{y.data(), rows, out}, saved.data());
    return weighted_sum(c, y.data());
  };
  const auto expected_x = differences(x, forward), expected_parameters = differences(parameters, forward);

  y.assign(y.size(), nothing_yet);
  saved.assign(saved.size(), nothing_yet);
  forward();
  if constexpr (pdp::nn::works_in_place<L>) {  // in place, which overwrites the input
    const auto apart = y;
    std::ranges::copy(x, y.begin());
    layer.forward(Cpu{}, values_only, read_y, Matrix<double>{y.data(), rows, out}, saved.data());
    CHECK(y == apart);
    x.assign(x.size(), nothing_yet);
  }
  if constexpr (pdp::nn::forgets_output<L>) y.assign(y.size(), nothing_yet);
  auto gradient_x = unwritten(rows * width), gradient = unwritten(layer.parameter_elements());
  layer.backward_input(Cpu{}, values_only, in, read_y, gradient_y, Matrix<double>{gradient_x.data(), rows, width}, saved.data());
  CHECK(support::difference(gradient_x, expected_x) < tolerance);

  const auto places = parameter_places(layer);
  layer.backward_weight(Cpu{}, pdp::nn::State<double>{parameters.data(), gradient.data(), false}, in, read_y, gradient_y, saved.data());
  CHECK(support::difference(at(gradient, places), at(expected_parameters, places)) < tolerance);

  // A second time, with accumulation.
  auto twice = at(gradient, places);
  for (double& value : twice) value *= 2;
  layer.backward_weight(Cpu{}, pdp::nn::State<double>{parameters.data(), gradient.data(), true}, in, read_y, gradient_y, saved.data());
  CHECK(support::difference(at(gradient, places), twice) < tolerance);
}

/// A stage with the memory of one batch: a tensor at every boundary (views share theirs) and the saved elements of each layer.
template <pdp::nn::Block Model>
class Batch {
 public:
  using Stage = pdp::nn::Stage<pdp::nn::LeafTypes<Model>, Cpu, double>;

  Batch(Stage& stage, Index rows) : stage_{stage}, layers_{stage.outline().size()}, slot_{layers_} {
    const pdp::nn::Outline& outline = stage.outline();
    slot_.rows = rows;
    memory_.reserve(3 * static_cast<std::size_t>(layers_) + 2);
    for (auto* tensors : {&slot_.activations, &slot_.gradients})
      for (int boundary = 0; boundary <= layers_; ++boundary) {
        const bool view = boundary > 0 && outline.layers[static_cast<std::size_t>(boundary) - 1].is_view;
        (*tensors)[static_cast<std::size_t>(boundary)] = view ? (*tensors)[static_cast<std::size_t>(boundary) - 1]
                                                              : memory_.emplace_back(unwritten(rows * outline.width(boundary))).data();
      }
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers_); ++layer)
      slot_.saved[layer] = memory_.emplace_back(unwritten(rows * outline.layers[layer].saved)).data();
    std::ranges::copy(support::normal<double>(rows * outline.width(0), 4), slot_.activations.front());
    c_ = support::normal<double>(rows * outline.width(layers_), 5);
  }

  [[nodiscard]] int layers() const { return layers_; }
  [[nodiscard]] const pdp::nn::Slot<double>& slot() const { return slot_; }
  [[nodiscard]] std::span<double> input() { return stage_.activation(slot_, 0).values(); }
  [[nodiscard]] std::vector<double> output() {
    const auto values = stage_.activation(slot_, layers_).values();
    return {values.begin(), values.end()};
  }
  /// Makes the passes those of a step. The layers must not pause, except frozen ones.
  void train() { slot_.pass.is_training = true; }
  double forward() {
    stage_.forward(slot_, 0, layers_);
    return weighted_sum(c_, slot_.activations.back());
  }
  void set_gradient() { std::ranges::copy(c_, slot_.gradients.back()); }
  void backward(bool accumulate) {
    set_gradient();
    stage_.backward_input(slot_, 0, layers_);
    stage_.backward_weight(slot_, 0, layers_, accumulate);
  }

 private:
  Stage& stage_;
  int layers_;
  pdp::nn::Slot<double> slot_;
  std::vector<std::vector<double>> memory_;
  std::vector<double> c_;
};

/// Returns the gradients of a stage's parameters in model order, without the padding.
template <class Stage>
std::vector<double> parameter_gradients(Stage& stage, int unit = 0) {
  std::vector<double> found;
  stage.for_each_parameter([&](const pdp::nn::Parameter& parameter, std::span<double> values) {
    const auto gradients = stage.gradients(unit).subspan(static_cast<std::size_t>(parameter.offset), values.size());
    found.insert(found.end(), gradients.begin(), gradients.end());
  });
  return found;
}

/// Checks the gradients of all parameters of a model in a Stage of one unit, and that a second batch accumulates.
template <pdp::nn::Block Model>
void check_model(const Model& model, const pdp::Shape& input, Index rows) {
  INFO("a model in a stage, " << rows << " rows");
  const int layers = static_cast<int>(pdp::nn::leaves(model));
  pdp::nn::Stage<pdp::nn::LeafTypes<Model>, Cpu, double> stage{model, input, {{0, layers}}, /*seed*/ 7};
  Batch<Model> batch{stage, rows};

  std::vector<double> expected;
  stage.for_each_parameter([&](const pdp::nn::Parameter&, std::span<double> values) {
    const auto found = differences(values, [&] { return batch.forward(); });
    expected.insert(expected.end(), found.begin(), found.end());
  });

  std::ranges::fill(stage.gradients(0), nothing_yet);
  batch.forward();
  batch.backward(false);
  CHECK(support::difference(parameter_gradients(stage), expected) < tolerance);

  for (double& value : expected) value *= 2;
  batch.backward(true);
  CHECK(support::difference(parameter_gradients(stage), expected) < tolerance);
}

}  // namespace gradient_check
