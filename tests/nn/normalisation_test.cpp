#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/engine/parameter_settings.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/group_norm.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/rms_norm.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/gradients.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/task.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace normalisation_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace strategy = pdp::strategy;
using pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// The results of a layer for some rows: y, and the gradients of x and of the parameters. Parameters are without padding.
template <class T>
struct Results {
  std::vector<T> y, gradient_x, gradient;
  friend bool operator==(const Results&, const Results&) = default;
};

/// The input of a layer.
template <class T>
struct Input {
  Index rows = 0, cols = 0;
  std::vector<T> x, gradient_y, parameters;

  Input(Index row_count, Index column_count, Index parameter_count, double mean = 0, double deviation = 1)
      : rows{row_count},
        cols{column_count},
        x{support::normal<T>(rows * cols, 1)},
        gradient_y{support::normal<T>(rows * cols, 2)},
        parameters{support::normal<T>(parameter_count, 3)} {
    for (T& each : x) each = static_cast<T>(mean + deviation * static_cast<double>(each));
  }
};

/// Returns the results of a layer on a CPU. The gradients of the parameters are added to 0.5 if `accumulate` is true.
template <class L, class T>
Results<T> results(const L& layer, const Input<T>& in, bool accumulate = false, const Cpu& cpu = {}) {
  std::vector<T> value(pdp::as_size(layer.parameter_elements())), gradient(value.size(), accumulate ? T{0.5} : T{99});
  std::vector<nn::Parameter> all;
  layer.parameters({}, 0, [&](const nn::Parameter& parameter) { all.push_back(parameter); });
  auto from = in.parameters.begin();
  for (const nn::Parameter& each : all) {
    std::copy_n(from, each.elements(), value.begin() + each.offset);
    from += each.elements();
  }
  Results<T> found{std::vector<T>(in.x.size(), T{99}), std::vector<T>(in.x.size(), T{99}), {}};
  const nn::State<T> state{value.data(), gradient.data(), accumulate};
  const Matrix<const T> x{in.x.data(), in.rows, in.cols}, g{in.gradient_y.data(), in.rows, in.cols}, none{nullptr, in.rows, in.cols};
  T* const saved = nullptr;
  layer.forward(cpu, state, x, Matrix<T>{found.y.data(), in.rows, in.cols}, saved);
  layer.backward_input(cpu, state, x, none, g, Matrix<T>{found.gradient_x.data(), in.rows, in.cols}, saved);
  layer.backward_weight(cpu, state, x, none, g, saved);
  for (const nn::Parameter& each : all)
    found.gradient.insert(found.gradient.end(), gradient.begin() + each.offset, gradient.begin() + each.offset + each.elements());
  return found;
}

/// The results in double.
struct Expected : Results<double> {
  double largest = 1;  // of the terms that the gradient of x is a difference of
};

/// Returns the results by the formulas of the papers, one value at a time.
template <class T>
Expected expected(const pdp::GroupNormalisation& how, bool has_bias, const Input<T>& in, double start) {
  const Index positions = in.cols / how.channels, count = in.cols / how.groups;
  const auto channels = pdp::as_size(how.channels);
  Expected found{
      {std::vector<double>(in.x.size()), std::vector<double>(in.x.size()), std::vector<double>(channels * (has_bias ? 2 : 1), start)}};
  for (Index group = 0; group < in.rows * how.groups; ++group) {
    const auto at = [&](Index i) { return pdp::as_size(group * count + i); };
    const auto channel = [&](Index i) { return pdp::as_size(group % how.groups * (how.channels / how.groups) + i / positions); };
    double mean = 0, variance = 0, of_gradient = 0, of_product = 0;
    for (Index i = 0; how.centred && i < count; ++i) mean += static_cast<double>(in.x[at(i)]) / static_cast<double>(count);
    for (Index i = 0; i < count; ++i) variance += std::pow(static_cast<double>(in.x[at(i)]) - mean, 2) / static_cast<double>(count);
    const double scale = 1 / std::sqrt(variance + how.eps);
    const auto normalised = [&](Index i) { return (static_cast<double>(in.x[at(i)]) - mean) * scale; };
    const auto weighted = [&](Index i) {
      return static_cast<double>(in.gradient_y[at(i)]) * static_cast<double>(in.parameters[channel(i)]);
    };
    for (Index i = 0; i < count; ++i) {
      found.y[at(i)] = normalised(i) * static_cast<double>(in.parameters[channel(i)]) +
                       (has_bias ? static_cast<double>(in.parameters[channels + channel(i)]) : 0);
      of_gradient += how.centred ? weighted(i) / static_cast<double>(count) : 0;
      of_product += weighted(i) * normalised(i) / static_cast<double>(count);
      found.gradient[channel(i)] += static_cast<double>(in.gradient_y[at(i)]) * normalised(i);
      if (has_bias) found.gradient[channels + channel(i)] += static_cast<double>(in.gradient_y[at(i)]);
    }
    for (Index i = 0; i < count; ++i) {
      found.gradient_x[at(i)] = scale * (weighted(i) - of_gradient - normalised(i) * of_product);
      found.largest = std::max(found.largest, scale * std::abs(weighted(i)));
    }
  }
  return found;
}

template <class T>
void check_same(const Results<T>& found, const Expected& wanted, double tolerance) {
  CHECK(support::difference(found.y, wanted.y) < tolerance);
  CHECK(support::difference(found.gradient_x, wanted.gradient_x) < tolerance * wanted.largest);
  CHECK(support::difference(found.gradient, wanted.gradient) < tolerance * std::sqrt(static_cast<double>(found.y.size() + 1)));
}

/// Compares the layers with these sizes with the reference, on all kinds of registers. A row has `vectors` vectors of `width` values.
template <class T>
void check_values(Index rows, Index vectors, Index width, double tolerance, double mean = 0, double deviation = 1) {
  CAPTURE(rows, vectors, width, mean);
  const Input<T> in{rows, vectors * width, 2 * width, mean, deviation};
  Input<T> of_vectors = in;
  of_vectors.rows = rows * vectors;
  of_vectors.cols = width;
  for (const pdp::cpu::Simd registers : support::registers())
    for (const bool accumulate : {false, true}) {
      const Cpu cpu{.registers = registers};
      const double start = accumulate ? 0.5 : 0;
      check_same(results(nn::LayerNorm{width}, in, accumulate, cpu), expected({.channels = width}, true, of_vectors, start), tolerance);
      check_same(results(nn::LayerNorm{.width = width, .eps = 0.25, .bias = false}, in, accumulate, cpu),
                 expected({.channels = width, .eps = 0.25}, false, of_vectors, start), tolerance);
      if (mean == 0)
        check_same(results(nn::RmsNorm{width}, in, accumulate, cpu),
                   expected({.channels = width, .eps = 1e-6, .centred = false}, false, of_vectors, start), tolerance);
    }
}
template <class T>
void check_groups(Index rows, Index groups, Index channels, Index positions, double tolerance, double mean = 0, double deviation = 1) {
  CAPTURE(rows, groups, channels, positions, mean);
  const Input<T> in{rows, channels * positions, 2 * channels, mean, deviation};
  for (const pdp::cpu::Simd registers : support::registers())
    for (const bool accumulate : {false, true})
      check_same(results(nn::GroupNorm{groups, channels}, in, accumulate, Cpu{.registers = registers}),
                 expected({.channels = channels, .groups = groups}, true, in, accumulate ? 0.5 : 0), tolerance);
}

constexpr double in_float = 4e-6, in_double = 1e-13;

auto classifier() {
  using namespace nn;
  return pdp::Task{Sequential{Linear{8, 24}, LayerNorm{24}, Tanh{}, Residual{Sequential{RmsNorm{24}, Linear{24, 24}, Tanh{}}},
                              Linear{24, 48}, Tanh{}, Linear{48, 24}, GroupNorm{3, 24}, Linear{24, 4}},
                   pdp::loss::CrossEntropy{},
                   pdp::optim::Grouped{pdp::optim::AdamW{.lr = 3e-3f}, pdp::optim::no_decay_on_biases_and_norms}};
}

}  // namespace

TEST_CASE("LayerNorm and RmsNorm have the values and gradients of their definitions", "[nn][normalisation]") {
  for (const Index rows : {0, 1, 3, 70})
    for (const Index vectors : {1, 5})
      for (const Index width : {1, 2, 7, 16, 33, 100}) {
        check_values<double>(rows, vectors, width, in_double);
        check_values<float>(rows, vectors, width, in_float);
      }
  check_values<float>(3, 1, 20'011, in_float);
}

TEST_CASE("GroupNorm has the values and gradients of its definition", "[nn][normalisation]") {
  for (const Index rows : {0, 1, 3, 300})
    for (const Index positions : {1, 2, 9, 35})
      for (const Index groups : {1, 2, 6}) {
        check_groups<double>(rows, groups, 12, positions, in_double);
        check_groups<float>(rows, groups, 12, positions, in_float);
      }
  check_groups<double>(5, 1, 1, 1, in_double);
  check_groups<double>(3, 300, 300, 5, in_double);  // more groups than statistics are computed for at a time
  check_groups<double>(3, 300, 2100, 1, in_double);
}

TEST_CASE("Normalisation layers keep digits if the mean is large and the variance small", "[nn][normalisation]") {
  for (const double mean : {-1e4, 1e3, 3e5}) {
    check_values<float>(5, 1, 333, 20 * in_float, mean, 0.75);
    check_groups<float>(5, 3, 12, 35, 20 * in_float, mean, 0.75);
  }
  // All values of a group are equal: the variance is 0 and y the bias, however large the values are.
  for (const float value : {0.0f, 1e9f, -3e20f, 1e-30f}) {
    Input<float> in{3, 77, 2 * 77};
    std::fill(in.x.begin(), in.x.end(), value);
    const auto found = results(nn::LayerNorm{77}, in);
    for (std::size_t i = 0; i < found.y.size(); ++i) CHECK(std::abs(static_cast<double>(found.y[i] - in.parameters[77 + i % 77])) < 1e-5);
  }
}

TEST_CASE("LayerNorm of a vector with NaN or infinity gives NaN", "[nn][normalisation]") {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    Input<float> in{2, 40, 2 * 40};
    in.x[57] = bad;
    const auto found = results(nn::LayerNorm{40}, in);
    for (std::size_t i = 0; i < 80; ++i) CHECK(std::isnan(found.y[i]) == (i >= 40));
  }
}

TEMPLATE_TEST_CASE("Normalisation layers have the gradients of central differences", "[nn][normalisation]", double, float) {
  const auto check = [](const auto& model, const Shape& input) {
    const auto found = pdp::testing::check_gradients<TestType>(model, input, {.mean = 0.5});
    INFO(found.text());
    CHECK(found);
  };
  for (const Index width : {2, 5, 19}) {
    check(nn::LayerNorm{width}, Shape{width});
    check(nn::LayerNorm{.width = width, .eps = 0.1, .bias = false}, Shape{width});
    check(nn::RmsNorm{width}, Shape{width});
  }
  check(nn::LayerNorm{1}, Shape{1});
  check(nn::GroupNorm{1, 4}, Shape{4, 3});
  check(nn::GroupNorm{2, 4}, Shape{4, 3, 2});
  check(nn::GroupNorm{4, 4}, Shape{4, 5});
  check(nn::GroupNorm{2, 6}, Shape{6});
  check(nn::Sequential{nn::Linear{5, 9}, nn::LayerNorm{9}, nn::Tanh{}, nn::Residual{nn::Sequential{nn::RmsNorm{9}, nn::Linear{9, 9}}}},
        Shape{5});
}

TEST_CASE("Normalisation layers give equal results with one thread and with several", "[nn][normalisation]") {
  const auto check = [](const auto& layer, Index rows, Index cols, Index parameters) {
    const Input<float> in{rows, cols, parameters};
    const auto alone = results(layer, in, true);
    for (const int threads : {2, 3, 7}) CHECK(results(layer, in, true, Cpu{.threads = threads}) == alone);
  };
  for (const Index rows : {1, 37, 600}) {
    check(nn::LayerNorm{1031}, rows, 1031, 2 * 1031);
    check(nn::LayerNorm{17}, rows, 4 * 17, 2 * 17);
    check(nn::RmsNorm{1031}, rows, 1031, 1031);
    check(nn::GroupNorm{3, 609}, rows, 609, 2 * 609);
    check(nn::GroupNorm{4, 8}, rows, 8 * 131, 2 * 8);
  }
}

TEST_CASE("Normalisation layers begin with weights 1 and biases 0, have PyTorch's names and can be exempt from decay",
          "[nn][normalisation]") {
  const nn::Sequential model{nn::LayerNorm{6}, nn::RmsNorm{6}, nn::GroupNorm{2, 6}, nn::LayerNorm{.width = 6, .bias = false}};
  std::vector<std::string> names;
  nn::for_each_leaf(model, {}, [&](const auto& layer, const nn::Path& at) {
    layer.parameters(at, 0, [&](const nn::Parameter& parameter) {
      names.push_back(parameter.full_name());
      CHECK(parameter.file_shape() == std::vector<Index>{6});
      CHECK(pdp::engine::settings_of(std::span{&pdp::optim::no_decay_on_biases_and_norms, 1}, parameter).decay_factor == 0);
      CHECK(parameter.initial_values({}, 0, 6) == std::vector<double>(6, std::string{parameter.name} == "weight" ? 1.0 : 0.0));
    });
  });
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "1.weight", "2.weight", "2.bias", "3.weight"});
}

TEST_CASE("Normalisation layers refuse groups and samples that do not fit", "[nn][normalisation]") {
  CHECK_THROWS_WITH((nn::GroupNorm{4, 6}),
                    "nn::GroupNorm was given 4 groups of 6 channels; both must be 1 or more, and the channels a multiple of the groups");
  CHECK_THROWS_AS((nn::GroupNorm{0, 6}), pdp::ConfigError);
  CHECK_THROWS_AS((nn::GroupNorm{1, 0}), pdp::ConfigError);
  CHECK_THROWS_AS((nn::GroupNorm{-1, 3}), pdp::ConfigError);
  CHECK_THROWS_WITH(nn::check_widths(nn::flow(nn::GroupNorm{2, 6}, Shape{8, 3})),
                    Contains("(GroupNorm) expects 6 channels (the first dimension), but its input has 8"));
  CHECK_THROWS_WITH(nn::check_widths(nn::flow(nn::RmsNorm{3}, Shape{2, 8})),
                    Contains("(RmsNorm) expects 3 values in the last dimension, but its input has 8"));
  CHECK_THROWS_AS(nn::check_widths(nn::flow(nn::LayerNorm{}, Shape{8})), pdp::ShapeError);
  CHECK(nn::flow(nn::Sequential{nn::LayerNorm{4}, nn::Linear{4, 2}}, Shape{}).shape == Shape{Shape::leading, 2});
  CHECK(nn::LayerNorm{4}.output(Shape{3, 4}) == Shape{3, 4});
}

TEST_CASE("Normalisation layers throw ConfigError if eps or momentum is out of range", "[nn][normalisation][bad input]") {
  const auto refusal = [](const auto& make) {
    return support::message_of<pdp::ConfigError>([&] { static_cast<void>(nn::flow(make(), Shape{4})); }).value();
  };
  CHECK(refusal([] { return nn::LayerNorm{.width = 4, .eps = -0.5}; }) ==
        "nn::LayerNorm has eps -0.5; give it a finite number of 0 or more");
  CHECK_THAT(refusal([] { return nn::RmsNorm{.width = 4, .eps = pdp::not_a_number<double>()}; }), StartsWith("nn::RmsNorm has eps nan;"));
  CHECK_THAT(refusal([] { return nn::GroupNorm{2, 4, -1}; }), StartsWith("nn::GroupNorm has eps -1;"));
  CHECK_THAT(refusal([] { return nn::BatchNorm{.channels = 4, .eps = pdp::positive_infinity<double>()}; }),
             StartsWith("nn::BatchNorm has eps inf;"));
  CHECK(refusal([] { return nn::BatchNorm{.channels = 4, .momentum = 1.5}; }) ==
        "nn::BatchNorm has momentum 1.5; give it a number from 0 to 1");
  CHECK_THAT(refusal([] { return nn::BatchNorm{.channels = 4, .momentum = -0.1}; }), StartsWith("nn::BatchNorm has momentum -0.1;"));
  CHECK_NOTHROW(
      nn::flow(nn::Sequential{nn::BatchNorm{.channels = 4, .eps = 0, .momentum = 1}, nn::LayerNorm{.width = 4, .eps = 0}}, Shape{4}));
}

TEST_CASE("Models with normalisation layers have the losses of Single under every strategy", "[nn][normalisation][equivalence]") {
  const auto task = classifier();
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
  check(strategy::Hybrid<>{.mesh = {1, 2, 2}, .micro_batches = 2}, 4);
}

}  // namespace normalisation_test
