#include <pdp/comm/self.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/train/trainer.hpp>

#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "../examples/docs/log_cosh.hpp"
#include "catch.hpp"
#include "gpu.hpp"
#include "numbers.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace sixteen_bits_test {

// Compares operations on a GPU in bfloat16 and float16 with those on a CPU in float, on the same values. Then trains models in 16 bits.

using gpu::Copy, gpu::exact, gpu::rounded, gpu::widened;
using pdp::BFloat16;
using pdp::Float16;
using pdp::Index;
using pdp::LossSums;
using pdp::Matrix;
using pdp::StepNumbers;
using pdp::Trainer;
using pdp::cpu::Cpu;
namespace strategy = pdp::strategy;

namespace {

/// The error of one rounding: half a unit in the last place, or a whole unit if the float result lies near a tie.
template <class T>
constexpr double one_rounding = std::same_as<T, BFloat16> ? 1.0 / 128 : 1.0 / 1024;

/// Compares operation(device, inputs..., output) on both devices for matrices of one shape. `exact_bits`: the results of the GPU must equal
/// the rounded results of the CPU bit for bit. Otherwise they may differ by one rounding.
template <class T, std::size_t Inputs, class Operation>
void check_elementwise(const pdp::cuda::Device& device, Index rows, Index cols, bool exact_bits, const Operation& operation) {
  std::vector<std::vector<float>> in;
  std::vector<Copy<T>> there;
  for (std::size_t i = 0; i < Inputs; ++i) in.push_back(exact<T>(rows * cols, static_cast<int>(i)));
  for (const auto& each : in) there.emplace_back(device, rounded<T>(each));
  auto out = exact<T>(rows * cols + 1, 9);  // the last one is a guard value
  Copy<T> out_there{device, rounded<T>(out)};
  const auto call = [&]<std::size_t... I>(std::index_sequence<I...>) {
    operation(Cpu{}, Matrix<const float>{in[I].data(), rows, cols}..., Matrix<float>{out.data(), rows, cols});
    operation(device, std::as_const(there[I]).matrix(rows, cols)..., out_there.matrix(rows, cols));
  };
  call(std::make_index_sequence<Inputs>{});
  INFO(rows << " rows of " << cols);
  if (exact_bits)
    CHECK(pdp::testing::same_bits(widened(out_there.values()), widened(rounded<T>(out))));
  else
    CHECK(support::difference(widened(out_there.values()), out) < one_rounding<T>);
}

}  // namespace

TEMPLATE_TEST_CASE("Elementwise operations in 16 bits on a GPU match those on a CPU, rounded once", "[cuda]", BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 5, 64})
    for (const Index cols : {1, 7, 33, 257}) {
      check_elementwise<TestType, 1>(*device, rows, cols, true, [](const auto& on, auto x, auto y) { relu(on, x, y); });
      check_elementwise<TestType, 2>(*device, rows, cols, true,
                                     [](const auto& on, auto y, auto g, auto to) { relu_backward(on, y, g, to); });
      check_elementwise<TestType, 1>(*device, rows, cols, false, [](const auto& on, auto x, auto y) { hyperbolic_tangent(on, x, y); });
      check_elementwise<TestType, 2>(*device, rows, cols, false,
                                     [](const auto& on, auto y, auto g, auto to) { hyperbolic_tangent_backward(on, y, g, to); });
      check_elementwise<TestType, 1>(*device, rows, cols, false,
                                     [](const auto& on, auto x, auto y) { map(on, pdp::nn::functions::Gelu{}, x, y); });
      check_elementwise<TestType, 3>(*device, rows, cols, false, [](const auto& on, auto x, auto y, auto g, auto to) {
        map_backward(on, pdp::nn::functions::Gelu{}, x, y, g, to);
      });
      check_elementwise<TestType, 2>(*device, rows, cols, true, [](const auto& on, auto a, auto b, auto to) { add(on, a, b, to); });
      check_elementwise<TestType, 1>(*device, rows, cols, true, [](const auto& on, auto from, auto to) { copy(on, from, to); });
      check_elementwise<TestType, 1>(*device, rows, cols, true, [](const auto& on, auto row, auto to) { add_row(on, row.data, to); });
    }
}

TEMPLATE_TEST_CASE("Products in 16 bits on a GPU match those on a CPU, and products over rows return floats", "[cuda]", BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  struct Sizes {
    Index m, n, k;
  };
  for (const auto& [m, n, k] : {Sizes{1, 1, 1}, Sizes{5, 3, 7}, Sizes{64, 10, 33}, Sizes{17, 64, 16}, Sizes{3, 5, 0}})
    for (const bool with_row : {false, true}) {
      INFO(m << " x " << k << " by " << k << " x " << n << (with_row ? ", with a bias" : ""));
      const auto a = exact<TestType>(m * k, 1), b = exact<TestType>(k * n, 2), row = exact<TestType>(n, 5);
      const Copy<TestType> a_there{*device, rounded<TestType>(a)}, b_there{*device, rounded<TestType>(b)},
          row_there{*device, rounded<TestType>(row)};
      std::vector<float> c(static_cast<std::size_t>(m * n)), sums(static_cast<std::size_t>(n));
      Copy<TestType> c_there{*device, rounded<TestType>(c)};
      affine(Cpu{}, Matrix<const float>{a.data(), m, k}, Matrix<const float>{b.data(), k, n}, with_row ? row.data() : nullptr,
             Matrix<float>{c.data(), m, n}, pdp::Activation::none);
      affine(*device, a_there.matrix(m, k), b_there.matrix(k, n), with_row ? row_there.read().data() : nullptr, c_there.matrix(m, n),
             pdp::Activation::none);
      CHECK(support::difference(widened(c_there.values()), c) < 2 * one_rounding<TestType>);

      gemm_nt(Cpu{}, Matrix<const float>{a.data(), m, k}, Matrix<const float>{b.data(), n, k}, Matrix<float>{c.data(), m, n}, false);
      gemm_nt(*device, a_there.matrix(m, k), b_there.matrix(n, k), c_there.matrix(m, n), false);
      CHECK(support::difference(widened(c_there.values()), c) < one_rounding<TestType>);

      for (const bool accumulate : {false, true}) {
        Copy<float> of_rows{*device, c}, sums_there{*device, sums};
        gemm_tn(Cpu{}, Matrix<const float>{a.data(), k, m}, Matrix<const float>{b.data(), k, n}, Matrix<float>{c.data(), m, n}, accumulate);
        gemm_tn(*device, a_there.matrix(k, m), b_there.matrix(k, n), of_rows.matrix(m, n), accumulate);
        sum_rows(Cpu{}, Matrix<const float>{b.data(), k, n}, sums.data(), accumulate);
        sum_rows(*device, b_there.matrix(k, n), sums_there.data(), accumulate);
        CHECK(support::difference(of_rows.values(), c) < 1e-5);
        CHECK(support::difference(sums_there.values(), sums) < 1e-5);
      }
    }
}

TEMPLATE_TEST_CASE("Losses of 16-bit outputs on a GPU match those on a CPU, with rounded gradients", "[cuda]", BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 70})
    for (const Index cols : {1, 10, 33}) {
      INFO(rows << " rows of " << cols);
      const auto x = exact<TestType>(rows * cols, 1), y = support::normal(rows * cols, 2);
      std::vector<std::int32_t> classes;
      for (Index r = 0; r < rows; ++r) classes.push_back(static_cast<std::int32_t>((r * 5 + 1) % cols));
      const double scale = 1.0 / 8;
      const Copy<TestType> x_there{*device, rounded<TestType>(x)};
      const Copy<float> y_there{*device, y};
      const Copy<std::int32_t> classes_there{*device, classes};
      const Copy<double> scale_there{*device, {scale}};
      std::vector<float> gradient(x.size());
      Copy<TestType> gradient_there{*device, rounded<TestType>(gradient)};
      const auto check = [&](const LossSums& sums, const Copy<LossSums>& found) {
        CHECK(found.values().front().loss == Approx(sums.loss).epsilon(1e-6));
        CHECK(found.values().front().correct == sums.correct);
        CHECK(support::difference(widened(gradient_there.values()), gradient) < one_rounding<TestType> / 4);  // no element is larger than 1
      };
      LossSums sums{1, 2};
      Copy<LossSums> sums_there{*device, {sums}};
      softmax_cross_entropy(Cpu{}, Matrix<const float>{x.data(), rows, cols}, std::span{classes}, &scale,
                            Matrix<float>{gradient.data(), rows, cols}, &sums);
      softmax_cross_entropy(*device, x_there.matrix(rows, cols), classes_there.read(), scale_there.read().data(),
                            gradient_there.matrix(rows, cols), sums_there.data());
      check(sums, sums_there);

      Copy<float> known{*device, std::vector<float>(static_cast<std::size_t>(rows * 4))};
      Copy<LossSums> sums_of_parts{*device, {{1, 2}}};
      softmax_part(*device, x_there.matrix(rows, cols), classes_there.read(), 0, cols, known.matrix(rows, 4));
      softmax_cross_entropy_of_parts(*device, x_there.matrix(rows, cols), classes_there.read(), 0, std::as_const(known).matrix(rows, 4),
                                     scale_there.read().data(), gradient_there.matrix(rows, cols), sums_of_parts.data());
      check(sums, sums_of_parts);

      sums = {5, 6};
      Copy<LossSums> squares_there{*device, {sums}};
      squared_error(Cpu{}, Matrix<const float>{x.data(), rows, cols}, Matrix<const float>{y.data(), rows, cols}, &scale,
                    Matrix<float>{gradient.data(), rows, cols}, &sums);
      squared_error(*device, x_there.matrix(rows, cols), y_there.matrix(rows, cols), scale_there.read().data(),
                    gradient_there.matrix(rows, cols), squares_there.data());
      check(sums, squares_there);

      const auto check_elementwise = [&](const auto& function) {
        sums = {5, 6};
        Copy<LossSums> found{*device, {sums}};
        elementwise_loss(Cpu{}, function, Matrix<const float>{x.data(), rows, cols}, Matrix<const float>{y.data(), rows, cols}, &scale,
                         Matrix<float>{gradient.data(), rows, cols}, &sums);
        elementwise_loss(*device, function, x_there.matrix(rows, cols), y_there.matrix(rows, cols), scale_there.read().data(),
                         gradient_there.matrix(rows, cols), found.data());
        check(sums, found);
      };
      check_elementwise(pdp::loss::functions::AbsoluteError{});
      check_elementwise(pdp::loss::functions::Huber{.delta = 0.5f});
      check_elementwise(pdp::loss::functions::BinaryCrossEntropy{});
      check_elementwise(LogCosh{});
    }
}

TEMPLATE_TEST_CASE("fill_uniform in 16 bits on a GPU gives the values of a CPU, rounded", "[cuda]", BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  const auto key = pdp::random::make_key(7, "0.weight");
  std::vector<float> values(1003);
  Copy<TestType> there{*device, rounded<TestType>(values)};
  fill_uniform(Cpu{}, key, 0.3, pdp::random::Elements{}, std::span{values});
  fill_uniform(*device, key, 0.3, pdp::random::Elements{}, there.span());
  CHECK(pdp::testing::same_bits(widened(there.values()), widened(rounded<TestType>(values))));
}

TEMPLATE_TEST_CASE("update on a GPU writes rounded copies of the parameters unless the step is skipped", "[cuda]", BFloat16, Float16) {
  const auto device = gpu::device();
  if (!device) return;
  for (const bool skips : {false, true}) {
    const auto parameters = support::normal(1001, 1), gradient = support::normal(1001, 2);
    Copy<float> plain{*device, parameters}, masters{*device, parameters}, state{*device, std::vector<float>(2002)},
        other_state{*device, std::vector<float>(2002)};
    const Copy<float> gradient_there{*device, gradient};
    Copy<TestType> values{*device, rounded<TestType>(support::normal(1002, 3))};
    const auto before = widened(values.values());
    const Copy<StepNumbers> numbers{*device, {{.skips = skips}}};
    const float* const from = gradient_there.read().data();
    TestType* const to = values.data();
    const pdp::optim::Adam rule{.lr = 0.01f};
    pdp::cuda::update<2>(*device, rule, numbers.read().data(), plain.span(), std::span{&from, 1}, state.span());
    pdp::cuda::update<2>(*device, rule, numbers.read().data(), masters.span(), std::span{&from, 1}, other_state.span(),
                         std::span<TestType* const>{&to, 1});
    CHECK(pdp::testing::same_bits(masters.values(), plain.values()));
    auto expected = skips ? before : widened(rounded<TestType>(plain.values()));
    if (!skips) expected.push_back(before.back());
    CHECK(pdp::testing::same_bits(widened(values.values()), expected));
  }
}

namespace {

/// Returns a loss scale at which no gradient of these tests overflows.
template <class Precision>
std::optional<pdp::LossScaling> scaling_of() {
  if (std::same_as<Precision, pdp::MixedFloat16>) return pdp::LossScaling{.initial = 1024};
  return {};
}

/// The losses of some epochs of training, and the parameters after them.
struct Course {
  std::vector<double> losses;
  std::vector<pdp::checkpoint::Tensor> parameters;
};
template <class S, class... How>
Course train(const S& strategy, const pdp::TrainerOptions& options, const How&... how) {
  pdp::comm::Self self;
  Trainer trainer{self, strategy, tasks::residual_classifier(2), options, how...};
  Course course;
  trainer.fit(
      tasks::samples(100), {.epochs = 3}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) { course.losses.push_back(totals.mean_loss()); });
  course.parameters = trainer.parameters();
  trainer.check_parameters();
  return course;
}

}  // namespace

TEMPLATE_TEST_CASE("Training in 16 bits keeps float parameters and has losses within 0.03 of those in float", "[cuda]", pdp::MixedBfloat16,
                   pdp::MixedFloat16) {
  const auto device = gpu::device();
  if (!device) return;
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3, .clip_norm = GENERATE(0.0, 0.5), .loss_scaling = scaling_of<TestType>()};
  const Course expected = train(strategy::Single{}, {.global_batch = 32, .seed = 3, .clip_norm = options.clip_norm});
  const auto check = [&](const strategy::AnyStrategy& strategy) {
    const Course found = train(strategy, options, *device, TestType{});
    CHECK(support::difference(found.losses, expected.losses) < 0.03);
    CHECK(found.losses.back() < 0.9 * found.losses.front());
    bool is_rounded = true;
    for (const auto& tensor : found.parameters)
      is_rounded = is_rounded && pdp::testing::same_bits(tensor.values, widened(rounded<typename TestType::compute>(tensor.values)));
    CHECK(!is_rounded);
  };
  check(strategy::Single{});
  check(strategy::DataParallel{.accumulate = 3});
  check(strategy::Zero{.stage = 2, .accumulate = 2});
  check(strategy::Zero{.stage = 3});
}

TEMPLATE_TEST_CASE("Training in 16 bits repeats to the bit with and without graphs", "[cuda]", pdp::MixedBfloat16, pdp::MixedFloat16) {
  const auto recorded = gpu::device(), plain = gpu::device({.graphs = false});
  if (!recorded) return;
  const pdp::TrainerOptions options{.global_batch = 32, .seed = 3, .loss_scaling = scaling_of<TestType>()};
  const Course first = train(strategy::Single{}, options, *recorded, TestType{});
  for (const auto& device : {recorded, plain}) {
    const Course again = train(strategy::Single{}, options, *device, TestType{});
    CHECK(again.losses == first.losses);
    for (std::size_t i = 0; i < first.parameters.size(); ++i)
      CHECK(pdp::testing::same_bits(again.parameters[i].values, first.parameters[i].values));
  }
}

TEMPLATE_TEST_CASE("A 16-bit Trainer returns parameters as they were set and predicts within 0.05 of float", "[cuda]", pdp::MixedBfloat16,
                   pdp::MixedFloat16) {
  const auto device = gpu::device();
  if (!device) return;
  const auto task = tasks::residual_classifier(2);
  pdp::comm::Self self, other;
  Trainer on_cpu{self, strategy::Single{}, task, {.global_batch = 16, .seed = 9}};
  Trainer on_gpu{other, strategy::Zero{.stage = 3}, task, {.global_batch = 16, .seed = 8}, *device, TestType{}};
  const auto here = on_cpu.parameters();
  on_gpu.set_parameters(here, "memory");
  const auto there = on_gpu.parameters();
  REQUIRE(here.size() == there.size());
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(pdp::testing::same_bits(here[i].values, there[i].values));
  const auto data = tasks::samples(50);
  const auto inputs = support::normal(37 * data.sample_shape().elements(), 4);
  CHECK(support::difference(on_gpu.predict(inputs), on_cpu.predict(inputs)) < 0.05);
  CHECK(on_gpu.evaluate(data).loss == Approx(on_cpu.evaluate(data).loss).epsilon(0.02));
}

TEST_CASE("Training in float16 skips overflowing steps and lowers the loss scale until none overflows", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  pdp::comm::Self self;
  Trainer trainer{self,
                  strategy::Single{},
                  tasks::residual_classifier(2),
                  {.global_batch = 8, .seed = 3, .loss_scaling = pdp::LossScaling{.initial = 1 << 30}},
                  *device,
                  pdp::MixedFloat16{}};
  const auto x = support::normal(8 * tasks::samples(1).sample_shape().elements(), 1);
  const std::vector<std::int32_t> classes{0, 1, 2, 0, 1, 2, 0, 1};
  int skipped = 0;
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    const auto before = trainer.parameters();
    const auto totals = trainer.step(x, classes);
    skipped += totals.skipped ? 1 : 0;
    CHECK(pdp::testing::same_bits(trainer.parameters().front().values, before.front().values) == totals.skipped);
    if (step == 0) first = totals.loss;
    last = totals.loss;
    CHECK(std::isfinite(totals.loss));
    if (step == 0) CHECK(totals.skipped);
    if (step > 40) CHECK_FALSE(totals.skipped);
  }
  CHECK(skipped > 3);
  CHECK(last < 0.8 * first);
}

}  // namespace sixteen_bits_test
