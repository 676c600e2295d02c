#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/group_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/gradients.hpp>
#include <pdp/train/task.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace conv2d_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace strategy = pdp::strategy;
using pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu, pdp::cpu::Products;

namespace {

/// A convolution of some images, with its results: y, and the gradients of x and of the parameters.
struct Case {
  nn::Conv2d layer;
  Index height, width, rows;
};
template <class T>
struct Results {
  std::vector<T> y, gradient_x, gradient_weight, gradient_bias;
};

/// Random numbers for a case: the input and its parameters, and the gradient of y.
template <class T>
struct Numbers {
  std::vector<T> x, weight, bias, gradient_y;

  Numbers(const Case& of, const Shape& output)
      : x{support::normal<T>(of.rows * of.layer.in() * of.height * of.width, 1)},
        weight{support::normal<T>(
            of.layer.out() * of.layer.in() / of.layer.options().groups * of.layer.kernel().height * of.layer.kernel().width, 2)},
        bias{support::normal<T>(of.layer.out(), 3)},
        gradient_y{support::normal<T>(of.rows * output.elements(), 4)} {}
};

/// Returns the results by the definition, one product at a time, in double. Gradients of parameters are added to `start`.
template <class T>
Results<double> expected(const Case& of, const Numbers<T>& in, double start) {
  const nn::Conv2d& layer = of.layer;
  const nn::Conv2dOptions& options = layer.options();
  const Shape output = layer.output(Shape{layer.in(), of.height, of.width});
  const Index groups = options.groups, in_group = layer.in() / groups, out_group = layer.out() / groups;
  Results<double> found{std::vector<double>(in.gradient_y.size()), std::vector<double>(in.x.size()),
                        std::vector<double>(in.weight.size(), start), std::vector<double>(in.bias.size(), start)};
  for (Index row = 0; row < of.rows; ++row)
    for (Index f = 0; f < layer.out(); ++f)
      for (Index y = 0; y < output[1]; ++y)
        for (Index x = 0; x < output[2]; ++x) {
          const auto to = pdp::as_size(((row * layer.out() + f) * output[1] + y) * output[2] + x);
          const auto gradient = static_cast<double>(in.gradient_y[to]);
          found.gradient_bias[pdp::as_size(f)] += gradient;
          if (options.bias) found.y[to] += static_cast<double>(in.bias[pdp::as_size(f)]);
          for (Index c = 0; c < in_group; ++c)
            for (Index i = 0; i < layer.kernel().height; ++i)
              for (Index j = 0; j < layer.kernel().width; ++j) {
                const Index from_y = y * options.stride.height - options.padding.height + i * options.dilation.height;
                const Index from_x = x * options.stride.width - options.padding.width + j * options.dilation.width;
                if (from_y < 0 || from_y >= of.height || from_x < 0 || from_x >= of.width) continue;
                const auto from =
                    pdp::as_size(((row * layer.in() + f / out_group * in_group + c) * of.height + from_y) * of.width + from_x);
                const auto weight = pdp::as_size(((f * in_group + c) * layer.kernel().height + i) * layer.kernel().width + j);
                found.y[to] += static_cast<double>(in.weight[weight]) * static_cast<double>(in.x[from]);
                found.gradient_x[from] += static_cast<double>(in.weight[weight]) * gradient;
                found.gradient_weight[weight] += static_cast<double>(in.x[from]) * gradient;
              }
        }
  return found;
}

/// Returns the results of the layer. Gradients of parameters are added to 0.5 if `accumulate` is true.
template <class T>
Results<T> results(const Case& of, const Numbers<T>& in, bool accumulate, const Cpu& cpu) {
  const Shape input{of.layer.in(), of.height, of.width}, output = of.layer.output(input);
  std::vector<T> parameters(pdp::as_size(of.layer.parameter_elements())), gradient(parameters.size(), accumulate ? T{0.5} : T{99});
  const auto bias_at = static_cast<std::ptrdiff_t>(nn::padded_parameter(pdp::as_index(in.weight.size())));
  std::copy(in.weight.begin(), in.weight.end(), parameters.begin());
  if (of.layer.options().bias) std::copy(in.bias.begin(), in.bias.end(), parameters.begin() + bias_at);
  Results<T> found{std::vector<T>(in.gradient_y.size(), T{99}), std::vector<T>(in.x.size(), T{99}), {}, {}};
  nn::State<T> state{parameters.data(), gradient.data(), accumulate};
  state.input = input;
  const Matrix<const T> x{in.x.data(), of.rows, input.elements()}, none{nullptr, of.rows, output.elements()};
  const Matrix<const T> gradient_y{in.gradient_y.data(), of.rows, output.elements()};
  T* const saved = nullptr;
  of.layer.forward(cpu, state, x, Matrix<T>{found.y.data(), of.rows, output.elements()}, saved);
  of.layer.backward_input(cpu, state, x, none, gradient_y, Matrix<T>{found.gradient_x.data(), of.rows, input.elements()}, saved);
  of.layer.backward_weight(cpu, state, x, none, gradient_y, saved);
  found.gradient_weight.assign(gradient.begin(), gradient.begin() + static_cast<std::ptrdiff_t>(in.weight.size()));
  if (of.layer.options().bias)
    found.gradient_bias.assign(gradient.begin() + bias_at, gradient.begin() + bias_at + static_cast<std::ptrdiff_t>(in.bias.size()));
  return found;
}

/// Compares a convolution with its definition, and one thread with several.
template <class T>
void check(const Case& of, Products products, double tolerance) {
  const nn::Conv2dOptions& options = of.layer.options();
  CAPTURE(of.layer.in(), of.layer.out(), of.layer.kernel().height, of.layer.kernel().width, of.height, of.width, of.rows);
  CAPTURE(options.stride.height, options.stride.width, options.padding.height, options.padding.width, options.dilation.height,
          options.dilation.width, options.groups);
  const Numbers<T> in{of, of.layer.output(Shape{of.layer.in(), of.height, of.width})};
  for (const bool accumulate : {false, true}) {
    const Results<double> wanted = expected(of, in, accumulate ? 0.5 : 0);
    const Results<T> found = results(of, in, accumulate, Cpu{.products = products});
    const auto terms = [](Index count) { return std::sqrt(static_cast<double>(count) + 1); };
    const Index of_y = of.layer.in() / options.groups * of.layer.kernel().height * of.layer.kernel().width;
    CHECK(support::difference(found.y, wanted.y) < tolerance * terms(of_y));
    CHECK(support::difference(found.gradient_x, wanted.gradient_x) < tolerance * terms(of_y * of.layer.out()));
    CHECK(support::difference(found.gradient_weight, wanted.gradient_weight) < tolerance * terms(pdp::as_index(wanted.y.size())));
    if (options.bias)
      CHECK(support::difference(found.gradient_bias, wanted.gradient_bias) < tolerance * terms(pdp::as_index(wanted.y.size())));
    for (const int threads : {2, 5}) {
      const Results<T> shared = results(of, in, accumulate, Cpu{.threads = threads, .products = products});
      CHECK(support::difference(shared.y, wanted.y) < tolerance * terms(of_y));
      if (products == Products::eigen) CHECK((shared.gradient_weight == found.gradient_weight && shared.gradient_x == found.gradient_x));
    }
  }
}
void check(const Case& of) {
  check<double>(of, Products::best, 1e-13);
  check<float>(of, Products::eigen, 2e-6);
  check<float>(of, Products::best, 2e-6);
}

/// Residual blocks, convolutions with a stride and pooling, for images of 8 values.
auto classifier() {
  using namespace nn;
  return pdp::Task{Sequential{Conv2d{1, 6, 3, {.padding = 1}}, Tanh{},
                              Residual{Sequential{Conv2d{6, 6, 3, {.padding = 1, .groups = 2, .bias = false}}, GroupNorm{2, 6}, Tanh{}}},
                              Conv2d{6, 8, {2, 3}, {.stride = {1, 2}, .padding = {0, 1}}}, Tanh{}, MaxPool2d{{1, 2}, {.stride = 1}},
                              AdaptiveAvgPool2d{1}, Flatten{}, Linear{8, 4}},
                   pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};
}

}  // namespace

TEST_CASE("Conv2d has the values and gradients of its definition", "[nn][conv2d]") {
  for (const Index rows : {0, 1, 3}) {
    check({{1, 6, 5, {.padding = 2}}, 9, 7, rows});
    check({{3, 4, 1}, 5, 6, rows});
    check({{2, 3, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}}}, 8, 5, rows});
    check({{2, 3, 3, {.stride = 3, .padding = 3, .dilation = 2}}, 11, 10, rows});
    check({{6, 4, 3, {.padding = 1, .groups = 2, .bias = false}}, 6, 5, rows});
    check({{5, 10, 3, {.stride = 2, .padding = 1, .groups = 5}}, 7, 7, rows});
    check({{4, 4, {1, 3}, {.padding = {2, 2}, .dilation = {1, 2}, .groups = 4}}, 1, 3, rows});
    check({{1, 1, 4}, 4, 4, rows});
    check({{2, 2, 2, {.stride = 5}}, 9, 13, rows});  // windows that leave out positions
  }
}

TEST_CASE("Conv2d has the values and gradients of its definition if windows or channels are many", "[nn][conv2d]") {
  check({{40, 17, 3, {.padding = 1}}, 6, 5, 3});  // a window of more rows than are multiplied at a time
  check({{1, 2, 2}, 181, 97, 1});                 // more windows than are copied at a time
  check({{16, 16, 3, {.padding = 1}}, 28, 28, 2});
  check({{2, 3, 5, {.stride = 2, .padding = 2}}, 60, 33, 2});
}

TEST_CASE("Conv2d has the gradients of central differences", "[nn][conv2d]") {
  const auto check_gradients = [](const auto& model, const Shape& input) {
    const auto found = pdp::testing::check_gradients<double>(model, input);
    INFO(found.text());
    CHECK(found);
  };
  check_gradients(nn::Conv2d{2, 3, 3, {.padding = 1}}, Shape{2, 4, 5});
  check_gradients(nn::Conv2d{4, 2, {2, 1}, {.stride = {2, 3}, .dilation = {2, 1}, .groups = 2}}, Shape{4, 5, 4});
  check_gradients(nn::Conv2d{1, 2, 3, {.stride = 2, .bias = false}}, Shape{1, 6, 3});
  check_gradients(classifier().model, Shape{1, 2, 4});
}

TEST_CASE("Conv2d has PyTorch's names, shapes and initial bounds", "[nn][conv2d]") {
  std::vector<nn::Parameter> all;
  const nn::Conv2d layer{6, 4, {3, 5}, {.groups = 2}};
  layer.parameters(nn::Path{}.child(2), 0, [&](const nn::Parameter& parameter) { all.push_back(parameter); });
  REQUIRE(all.size() == 2);
  CHECK(all[0].full_name() == "2.weight");
  CHECK(all[0].file_shape() == std::vector<Index>{4, 3, 3, 5});
  CHECK(all[0].file_element(7) == 7);
  CHECK(all[1].full_name() == "2.bias");
  CHECK(all[1].file_shape() == std::vector<Index>{4});
  for (const nn::Parameter& each : all) {
    const std::vector<double> values = each.initial_values({5}, 0, each.elements());
    CHECK(std::ranges::all_of(values, [](double value) { return std::abs(value) <= 1 / std::sqrt(45.0); }));
    CHECK(std::ranges::any_of(values, [](double value) { return std::abs(value) > 0.5 / std::sqrt(45.0); }));
  }
  // The filters of an orthogonal weight are at right angles.
  nn::Conv2d{2, 3, 2, {.initializer = nn::orthogonal()}}.parameters({}, 0, [](const nn::Parameter& parameter) {
    if (parameter.cols == 0) return;
    const std::vector<double> values = parameter.initial_values({5}, 0, 24);
    for (std::size_t a = 0; a < 3; ++a)
      for (std::size_t b = 0; b < 3; ++b) {
        double product = 0;
        for (std::size_t i = 0; i < 8; ++i) product += values[a * 8 + i] * values[b * 8 + i];
        CHECK(std::abs(product - (a == b ? 1 : 0)) < 1e-12);
      }
  });
}

TEST_CASE("Conv2d refuses sizes and images that do not fit", "[nn][conv2d]") {
  CHECK_THROWS_WITH((nn::Conv2d{6, 8, 3, {.groups = 4}}),
                    "nn::Conv2d was given 6 input channels, 8 output channels and 4 groups; all must be 1 or more, and both numbers of "
                    "channels a multiple of the groups");
  CHECK_THROWS_AS((nn::Conv2d{0, 8, 3}), pdp::ConfigError);
  CHECK_THROWS_AS((nn::Conv2d{4, 6, 3, {.groups = 4}}), pdp::ConfigError);
  CHECK_THROWS_WITH((nn::Conv2d{1, 8, {3, 0}}), "nn::Conv2d was given the kernel 3 x 0; both numbers must be 1 or more");
  CHECK_THROWS_WITH((nn::Conv2d{1, 8, 3, {.stride = 0}}), "nn::Conv2d was given the stride 0 x 0; both numbers must be 1 or more");
  CHECK_THROWS_WITH((nn::Conv2d{1, 8, 3, {.padding = {0, -1}}}), "nn::Conv2d was given the padding 0 x -1; both numbers must be 0 or more");
  CHECK_THROWS_AS((nn::Conv2d{1, 8, 3, {.dilation = 0}}), pdp::ConfigError);

  const auto refused = [](const auto& model, const Shape& input) { nn::check_widths(nn::flow(model, input)); };
  CHECK_THROWS_WITH(refused(nn::Conv2d{3, 8, 5}, Shape{1, 28, 28}),
                    Contains("(Conv2d) expects 3 channels (the first dimension), but its input has 1 (shape [1, 28, 28])"));
  CHECK_THROWS_WITH(refused(nn::Conv2d{3, 8, 5}, Shape{784}),
                    Contains("(Conv2d) expects 3 dimensions (channels, height, width), but its input has 1"));
  CHECK_THROWS_WITH(refused(nn::Conv2d{3, 8, {2, 5}, {.padding = 1, .dilation = 2}}, Shape{3, 8, 6}),
                    Contains("(Conv2d) expects at least 7 columns (the third dimension), but its input has 6 (shape [3, 8, 6]); give it a "
                             "larger input"));
  CHECK_THROWS_WITH(refused(nn::Sequential{nn::Conv2d{1, 6, 5}, nn::Conv2d{16, 6, 5}}, Shape{}),
                    Contains("layer 1 (Conv2d) expects 16 channels (the first dimension), but its input has 6 (shape [6, ?, ?], the output "
                             "of Conv2d)"));
  CHECK_THROWS_WITH(refused(nn::Sequential{nn::Linear{4, 6}, nn::Conv2d{1, 6, 5}}, Shape{4}),
                    Contains("layer 1 (Conv2d) expects 3 dimensions"));
  CHECK(nn::flow(nn::Sequential{nn::Conv2d{1, 6, 5}, nn::MaxPool2d{2}}, Shape{}).shape == Shape{6, Shape::any, Shape::any});
  CHECK(nn::flow(nn::Sequential{nn::Conv2d{1, 6, 5}, nn::MaxPool2d{2}}, Shape{1, 28, 27}).shape == Shape{6, 12, 11});
}

TEST_CASE("Models with convolutions have the losses of Single under every strategy", "[nn][conv2d][equivalence]") {
  const auto task = classifier();
  const std::vector<float> x = pdp::testing::normal(250 * 8, 42);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 8) classes.push_back(static_cast<std::int32_t>(std::max_element(row, row + 4) - row));
  const pdp::data::InMemory<std::int32_t> samples{Shape{1, 2, 4}, x, classes};
  const auto check_losses = [&](const auto& how, int ranks) {
    const auto report = pdp::testing::serial_equivalence<comm::Thread>(task, samples, how, ranks, {.input = Shape{1, 2, 4}});
    INFO(report.text());
    CHECK(report);
    CHECK(report.strategy().back() < 0.8 * report.strategy().front());
  };
  check_losses(strategy::DataParallel{.accumulate = 2}, 3);
  check_losses(strategy::Zero{.stage = 3}, 2);
  check_losses(strategy::Pipeline<strategy::ZeroBubble>{.micro_batches = 3, .join_weights = 2}, 3);
  check_losses(strategy::Hybrid<>{.mesh = {2, 2, 1}, .micro_batches = 2}, 4);
}

}  // namespace conv2d_test
