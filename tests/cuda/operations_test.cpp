#include <pdp/loss/losses.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/add_change.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/testing/values.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../examples/docs/lion.hpp"
#include "../examples/docs/log_cosh.hpp"
#include "catch.hpp"
#include "gpu.hpp"
#include "support.hpp"

// Compares every operation on a GPU with the same operation on a CPU.

using gpu::Copy;
using pdp::BFloat16;
using pdp::Index;
using pdp::LossSums;
using pdp::Matrix;
using pdp::StepNumbers;
using pdp::cpu::Cpu;

namespace {

constexpr double few_ulps = 16 * static_cast<double>(std::numeric_limits<float>::epsilon());

/// Returns normal numbers with a guard value behind them.
std::vector<float> guarded(Index elements, int seed) {
  auto values = support::normal(elements, seed);
  values.push_back(12345);
  return values;
}

/// Compares operation(device, inputs..., output) on both devices. All matrices have one shape and start with normal numbers.
template <std::size_t Inputs, class Operation>
void check_elementwise(const pdp::cuda::Device& device, Index rows, Index cols, const Operation& operation) {
  std::vector<std::vector<float>> in;
  std::vector<Copy<float>> there;
  for (std::size_t i = 0; i < Inputs; ++i) in.push_back(guarded(rows * cols, static_cast<int>(i)));
  for (const auto& each : in) there.emplace_back(device, each);
  auto out = guarded(rows * cols, 9);
  Copy<float> out_there{device, out};
  const auto call = [&]<std::size_t... I>(std::index_sequence<I...>) {
    operation(Cpu{}, Matrix<const float>{in[I].data(), rows, cols}..., Matrix<float>{out.data(), rows, cols});
    operation(device, std::as_const(there[I]).matrix(rows, cols)..., out_there.matrix(rows, cols));
  };
  call(std::make_index_sequence<Inputs>{});
  INFO(rows << " rows of " << cols);
  CHECK(support::difference(out_there.values(), out) < few_ulps);
}

std::vector<std::int32_t> some_classes(Index rows, Index cols) {
  std::vector<std::int32_t> classes;
  for (Index r = 0; r < rows; ++r) classes.push_back(static_cast<std::int32_t>((r * 5 + 1) % cols));
  return classes;
}

}  // namespace

TEST_CASE("Elementwise operations on a GPU match those on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 5, 64})
    for (const Index cols : {1, 7, 33, 257}) {
      check_elementwise<1>(*device, rows, cols, [](const auto& on, auto x, auto y) { relu(on, x, y); });
      check_elementwise<2>(*device, rows, cols, [](const auto& on, auto y, auto g, auto to) { relu_backward(on, y, g, to); });
      const auto check_function = [&](const auto& function) {
        check_elementwise<1>(*device, rows, cols, [&](const auto& on, auto x, auto y) { map(on, function, x, y); });
        check_elementwise<3>(*device, rows, cols,
                             [&](const auto& on, auto x, auto y, auto g, auto to) { map_backward(on, function, x, y, g, to); });
      };
      check_function(pdp::nn::functions::Sigmoid{});
      check_function(pdp::nn::functions::Silu{});
      check_function(pdp::nn::functions::Gelu{});
      check_function(pdp::nn::functions::LeakyRelu{0.25f});
      check_elementwise<1>(*device, rows, cols, [](const auto& on, auto x, auto y) { hyperbolic_tangent(on, x, y); });
      check_elementwise<2>(*device, rows, cols, [](const auto& on, auto y, auto g, auto to) { hyperbolic_tangent_backward(on, y, g, to); });
      check_elementwise<2>(*device, rows, cols, [](const auto& on, auto a, auto b, auto to) { add(on, a, b, to); });
      check_elementwise<1>(*device, rows, cols, [](const auto& on, auto from, auto to) { copy(on, from, to); });
      check_elementwise<1>(*device, rows, cols, [](const auto& on, auto row, auto to) { add_row(on, row.data, to); });
    }
}

TEST_CASE("drop on a GPU equals that on a CPU bit for bit", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const StepNumbers numbers{.info = {.number = 7}};
  const Copy<StepNumbers> numbers_there{*device, {numbers}};
  const pdp::random::Key key = pdp::random::make_key(3, "pass", "1");
  for (const Index rows : {0, 1, 64})
    for (const Index cols : {1, 7, 257}) {
      const auto x = support::normal(rows * cols, 1);
      auto y = guarded(rows * cols, 2);
      const Copy<float> there{*device, x};
      Copy<float> y_there{*device, y};
      drop(Cpu{}, pdp::Pass{true, &numbers, key, 11, {5, 300, 310}}, 0.3f, Matrix<const float>{x.data(), rows, cols},
           Matrix<float>{y.data(), rows, cols});
      drop(*device, pdp::Pass{true, numbers_there.read().data(), key, 11, {5, 300, 310}}, 0.3f, there.matrix(rows, cols),
           y_there.matrix(rows, cols));
      CHECK(pdp::testing::same_bits(y_there.values(), y));
    }
}

TEST_CASE("relu on a GPU keeps NaN and equals that on a CPU bit for bit", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const std::vector<float> x{NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-42f};
  std::vector<float> expected(x.size());
  const Copy<float> there{*device, x};
  Copy<float> y{*device, expected};
  relu(Cpu{}, Matrix<const float>{x.data(), 1, 7}, Matrix<float>{expected.data(), 1, 7});
  relu(*device, there.matrix(1, 7), y.matrix(1, 7));
  CHECK(pdp::testing::same_bits(y.values(), expected));
}

struct Sizes {
  Index m, n, k;
};
/// The tolerance for sums of `terms` terms, which two devices add in different orders.
constexpr double tolerance(Index terms) { return 1e-5 + 1e-7 * static_cast<double>(terms); }
constexpr Sizes odd_sizes[] = {{1, 1, 1}, {5, 3, 7}, {64, 10, 33}, {17, 64, 16}, {9, 20, 300}, {3, 5, 0}, {0, 5, 3}};

TEST_CASE("gemm, gemm_nt and gemm_tn on a GPU match those on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const auto& [m, n, k] : odd_sizes)
    for (const bool accumulate : {false, true})
      for (const int form : {0, 1, 2}) {
        INFO(m << " x " << k << " by " << k << " x " << n << ", form " << form << ", accumulate " << accumulate);
        const auto a = support::normal(m * k, 1), b = support::normal(k * n, 2);
        auto c = guarded(m * n, 3);
        const Copy<float> a_there{*device, a}, b_there{*device, b};
        Copy<float> c_there{*device, c};
        const auto on = [&](const auto& computes, const float* left, const float* right, float* out) {
          const Matrix<float> to{out, m, n};
          if (form == 0) gemm(computes, Matrix<const float>{left, m, k}, Matrix<const float>{right, k, n}, to, accumulate);
          if (form == 1) gemm_nt(computes, Matrix<const float>{left, m, k}, Matrix<const float>{right, n, k}, to, accumulate);
          if (form == 2) gemm_tn(computes, Matrix<const float>{left, k, m}, Matrix<const float>{right, k, n}, to, accumulate);
        };
        on(Cpu{}, a.data(), b.data(), c.data());
        on(*device, a_there.read().data(), b_there.read().data(), c_there.data());
        CHECK(support::difference(c_there.values(), c) < tolerance(k));
      }
}

TEST_CASE("affine on a GPU matches that on a CPU with and without bias and activation", "[cuda]") {
  const bool fused = GENERATE(false, true);
  const auto device = gpu::device({.fused_relu = fused});
  if (!device) return;
  CHECK(fuses_activations(*device) == fused);
  for (const auto& [m, n, k] : odd_sizes)
    for (const bool has_bias : {false, true})
      for (const auto activation : {pdp::Activation::none, pdp::Activation::relu}) {
        INFO(m << " x " << k << " by " << k << " x " << n << ", bias " << has_bias << ", activation " << static_cast<int>(activation));
        const auto x = support::normal(m * k, 1), weight = support::normal(k * n, 2), bias = support::normal(n, 5);
        auto y = guarded(m * n, 3);
        const Copy<float> x_there{*device, x}, weight_there{*device, weight}, bias_there{*device, bias};
        Copy<float> y_there{*device, y};
        const auto on = [&](const auto& computes, const float* of_x, const float* of_weight, const float* of_bias, float* of_y) {
          affine(computes, Matrix<const float>{of_x, m, k}, Matrix<const float>{of_weight, k, n}, has_bias ? of_bias : nullptr,
                 Matrix<float>{of_y, m, n}, activation);
        };
        on(Cpu{}, x.data(), weight.data(), bias.data(), y.data());
        on(*device, x_there.read().data(), weight_there.read().data(), bias_there.read().data(), y_there.data());
        CHECK(support::difference(y_there.values(), y) < tolerance(k));
      }
}

TEST_CASE("sum_rows on a GPU matches that on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 5, 129, 1001})
    for (const Index cols : {1, 31, 32, 33, 200, 4099})
      for (const bool accumulate : {false, true}) {
        const auto x = support::normal(rows * cols, 1);
        auto sums = guarded(cols, 2);
        const Copy<float> there{*device, x};
        Copy<float> sums_there{*device, sums};
        sum_rows(Cpu{}, Matrix<const float>{x.data(), rows, cols}, sums.data(), accumulate);
        sum_rows(*device, there.matrix(rows, cols), sums_there.data(), accumulate);
        INFO(rows << " rows of " << cols);
        CHECK(support::difference(sums_there.values(), sums) < 1e-5 + 1e-7 * static_cast<double>(rows));
      }
}

TEST_CASE("sum_of_squares on a GPU matches that on a CPU, repeats to the bit and propagates NaN", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index count : {0, 1, 31, 1000, 20'000}) {
    auto x = support::normal(count, 1);
    double expected = 3;
    sum_of_squares(Cpu{}, Matrix<const float>{x.data(), 1, count}, &expected);
    const auto found = [&] {
      const Copy<float> there{*device, x};
      Copy<double> sum{*device, {3.0}};
      sum_of_squares(*device, there.matrix(1, count), sum.data());
      return sum.values().front();
    };
    const double first = found();
    CHECK(first == Approx(expected).epsilon(1e-12));
    CHECK(found() == first);
    if (count == 0) continue;
    x.back() = NAN;
    CHECK(!std::isfinite(found()));
  }
}

TEST_CASE("softmax_cross_entropy on a GPU matches that on a CPU with and without a gradient", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 9, 130})
    for (const Index cols : {1, 2, 10, 33, 100})
      for (const float spread : {0.0f, 1.0f, 30.0f}) {
        auto x = support::normal(rows * cols, 1);
        for (float& each : x) each *= spread;
        const auto classes = some_classes(rows, cols);
        const double scale = 1.0 / 64;
        auto gradient = guarded(rows * cols, 2);
        LossSums sums{1, 2};
        const Copy<float> there{*device, x};
        const Copy<std::int32_t> classes_there{*device, classes};
        const Copy<double> scale_there{*device, {scale}};
        Copy<float> gradient_there{*device, gradient};
        Copy<LossSums> sums_there{*device, {sums}}, without{*device, {sums}};
        softmax_cross_entropy(Cpu{}, Matrix<const float>{x.data(), rows, cols}, std::span{classes}, &scale,
                              Matrix<float>{gradient.data(), rows, cols}, &sums);
        softmax_cross_entropy(*device, there.matrix(rows, cols), classes_there.read(), scale_there.read().data(),
                              gradient_there.matrix(rows, cols), sums_there.data());
        softmax_cross_entropy(*device, there.matrix(rows, cols), classes_there.read(), scale_there.read().data(), Matrix<float>{},
                              without.data());
        INFO(rows << " rows of " << cols << ", spread " << spread);
        const LossSums found = sums_there.values().front();
        CHECK(found.loss == Approx(sums.loss).epsilon(1e-6));
        CHECK(found.correct == sums.correct);
        CHECK(without.values().front().loss == found.loss);
        CHECK(without.values().front().correct == found.correct);
        CHECK(support::difference(gradient_there.values(), gradient) < few_ulps);
      }
}

TEST_CASE("gemm with tf32 stays within the error of TF32 and does not change bfloat16 products", "[cuda]") {
  const auto plain = gpu::device(), fast = gpu::device({.tf32 = true});
  if (!plain || !fast) return;
  constexpr Index m = 33, k = 64, n = 17;
  const auto a = support::normal(m * k, 1), b = support::normal(k * n, 2);
  const auto product = [&](const pdp::cuda::Device& device) {
    const Copy<float> left{device, a}, right{device, b};
    Copy<float> c{device, std::vector<float>(m * n)};
    gemm(device, left.matrix(m, k), right.matrix(k, n), c.matrix(m, n), false);
    return c.values();
  };
  const auto expected = product(*plain), found = product(*fast);
  const auto of_absolutes = [&](Index row, Index col) {
    double sum = 0;
    for (Index i = 0; i < k; ++i)
      sum += static_cast<double>(std::abs(a[static_cast<std::size_t>(row * k + i)] * b[static_cast<std::size_t>(i * n + col)]));
    return sum;
  };
  for (Index row = 0; row < m; ++row)
    for (Index col = 0; col < n; ++col) {
      const auto at = static_cast<std::size_t>(row * n + col);
      // TF32 changes an operand by 2^-11 of it at most if it rounds, and by 2^-10 if it truncates.
      CHECK(std::abs(static_cast<double>(found[at] - expected[at])) <= of_absolutes(row, col) * 0x1p-9);
    }
  const auto in_16_bits = [&](const pdp::cuda::Device& device) {
    const Copy<BFloat16> left{device, {a.begin(), a.end()}}, right{device, {b.begin(), b.end()}};
    Copy<BFloat16> c{device, std::vector<BFloat16>(m * n)};
    gemm(device, left.matrix(m, k), right.matrix(k, n), c.matrix(m, n), false);
    return c.values();
  };
  CHECK(pdp::testing::same_bits(in_16_bits(*fast), in_16_bits(*plain)));
}

TEST_CASE("softmax_cross_entropy and softmax_part on a GPU give NaN for a class out of range", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  constexpr std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t wrong : {-1, 10, largest, -largest}) {
    const Copy<float> logits{*device, support::normal(30, 1)};
    const Copy<std::int32_t> classes{*device, {0, wrong, 9}};
    const Copy<double> scale{*device, {1.0}};
    Copy<LossSums> sums{*device, {LossSums{}}};
    softmax_cross_entropy(*device, logits.matrix(3, 10), classes.read(), scale.read().data(), Matrix<float>{}, sums.data());
    CHECK(std::isnan(sums.values().front().loss));
    Copy<float> part{*device, std::vector<float>(12)};
    softmax_part(*device, logits.matrix(3, 10), classes.read(), 0, 10, part.matrix(3, 4));
    CHECK(std::isnan(part.values()[6]));
    CHECK(std::isfinite(part.values()[2]));
  }
}

TEST_CASE("softmax_cross_entropy_of_parts on a GPU matches the loss of all columns on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  constexpr Index rows = 20, own = 7, parts = 3, cols = own * parts;
  for (const float spread : {0.0f, 1.0f, 30.0f}) {
    auto x = support::normal(rows * cols, 1);
    for (float& each : x) each *= spread;
    const auto classes = some_classes(rows, cols);
    const double scale = 1.0 / rows;
    std::vector<float> gradient(x.size());
    LossSums sums;
    softmax_cross_entropy(Cpu{}, Matrix<const float>{x.data(), rows, cols}, std::span{classes}, &scale,
                          Matrix<float>{gradient.data(), rows, cols}, &sums);
    const Copy<std::int32_t> classes_there{*device, classes};
    const Copy<double> scale_there{*device, {scale}};
    Copy<float> known{*device, std::vector<float>(parts * rows * 4)};
    std::vector<Copy<float>> columns;
    for (Index part = 0; part < parts; ++part) {
      std::vector<float> each;
      for (Index r = 0; r < rows; ++r) each.insert(each.end(), x.begin() + r * cols + part * own, x.begin() + r * cols + (part + 1) * own);
      columns.emplace_back(*device, each);
      softmax_part(*device, std::as_const(columns.back()).matrix(rows, own), classes_there.read(), part * own, cols,
                   Matrix<float>{known.data() + part * rows * 4, rows, 4});
    }
    for (Index part = 0; part < parts; ++part) {
      Copy<float> found{*device, std::vector<float>(rows * own)};
      Copy<LossSums> found_sums{*device, {LossSums{}}};
      softmax_cross_entropy_of_parts(*device, std::as_const(columns[static_cast<std::size_t>(part)]).matrix(rows, own),
                                     classes_there.read(), part * own, std::as_const(known).matrix(parts * rows, 4),
                                     scale_there.read().data(), found.matrix(rows, own), found_sums.data());
      CHECK(found_sums.values().front().loss == Approx(sums.loss).epsilon(1e-6));
      CHECK(found_sums.values().front().correct == sums.correct);
      std::vector<float> expected;
      for (Index r = 0; r < rows; ++r)
        expected.insert(expected.end(), gradient.begin() + r * cols + part * own, gradient.begin() + r * cols + (part + 1) * own);
      CHECK(support::difference(found.values(), expected) < few_ulps);
    }
  }
}

TEST_CASE("squared_error on a GPU matches that on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const Index rows : {0, 1, 70})
    for (const Index cols : {1, 33, 784}) {
      const auto x = support::normal(rows * cols, 1), y = support::normal(rows * cols, 2);
      auto gradient = guarded(rows * cols, 3);
      const double scale = 1.0 / 8;
      LossSums sums{5, 6};
      const Copy<float> x_there{*device, x}, y_there{*device, y};
      const Copy<double> scale_there{*device, {scale}};
      Copy<float> gradient_there{*device, gradient};
      Copy<LossSums> sums_there{*device, {sums}};
      squared_error(Cpu{}, Matrix<const float>{x.data(), rows, cols}, Matrix<const float>{y.data(), rows, cols}, &scale,
                    Matrix<float>{gradient.data(), rows, cols}, &sums);
      squared_error(*device, x_there.matrix(rows, cols), y_there.matrix(rows, cols), scale_there.read().data(),
                    gradient_there.matrix(rows, cols), sums_there.data());
      CHECK(sums_there.values().front().loss == Approx(sums.loss).epsilon(1e-6));
      CHECK(sums_there.values().front().correct == 6);
      CHECK(support::difference(gradient_there.values(), gradient) < few_ulps);
    }
}

TEST_CASE("Label smoothing on a GPU gives the loss and gradient of a CPU, also for divided columns", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  constexpr Index rows = 70, own = 17, cols = 2 * own;
  const auto x = support::normal(rows * cols, 1);
  const auto classes = some_classes(rows, cols);
  const double scale = 1.0 / 8, smoothing = 0.2;
  std::vector<float> gradient(x.size());
  LossSums sums{1, 2};
  softmax_cross_entropy(Cpu{}, Matrix<const float>{x.data(), rows, cols}, std::span<const std::int32_t>{classes}, &scale,
                        Matrix<float>{gradient.data(), rows, cols}, &sums, pdp::no_class, smoothing);
  const Copy<float> there{*device, x};
  const Copy<std::int32_t> classes_there{*device, classes};
  const Copy<double> scale_there{*device, {scale}};
  const auto check = [&](const Copy<float>& found, const Copy<LossSums>& found_sums, const std::vector<float>& expected) {
    CHECK(found_sums.values().front().loss == Approx(sums.loss).epsilon(1e-6));
    CHECK(found_sums.values().front().correct == sums.correct);
    CHECK(support::difference(found.values(), expected) < few_ulps);
  };
  Copy<float> whole{*device, std::vector<float>(x.size())};
  Copy<LossSums> whole_sums{*device, {LossSums{1, 2}}};
  softmax_cross_entropy(*device, there.matrix(rows, cols), classes_there.read(), scale_there.read().data(), whole.matrix(rows, cols),
                        whole_sums.data(), pdp::no_class, smoothing);
  check(whole, whole_sums, gradient);
  const auto columns_of = [&](const std::vector<float>& all, Index part) {
    std::vector<float> some;
    for (Index r = 0; r < rows; ++r)
      some.insert(some.end(), all.begin() + r * cols + part * own, all.begin() + r * cols + (part + 1) * own);
    return some;
  };
  Copy<float> known{*device, std::vector<float>(2 * rows * 5)};
  for (Index part = 0; part < 2; ++part) {
    const Copy<float> columns{*device, columns_of(x, part)};
    softmax_part(*device, columns.matrix(rows, own), classes_there.read(), part * own, cols,
                 Matrix<float>{known.data() + part * rows * 5, rows, 5}, pdp::no_class, smoothing);
  }
  for (Index part = 0; part < 2; ++part) {
    const Copy<float> columns{*device, columns_of(x, part)};
    Copy<float> found{*device, std::vector<float>(rows * own)};
    Copy<LossSums> found_sums{*device, {LossSums{1, 2}}};
    softmax_cross_entropy_of_parts(*device, columns.matrix(rows, own), classes_there.read(), part * own,
                                   std::as_const(known).matrix(2 * rows, 5), scale_there.read().data(), found.matrix(rows, own),
                                   found_sums.data(), pdp::no_class, smoothing, cols);
    check(found, found_sums, columns_of(gradient, part));
  }
}

TEST_CASE("Elementwise losses on a GPU match those on a CPU, and ignore the same rows", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto check = [&](const auto& loss, Index rows, Index cols, bool writes) {
    const auto x = support::normal(rows * cols, 1);
    auto y = support::normal(rows * cols, 2);
    for (float& each : y) each = 0.5f + 0.5f * std::sin(each);  // from 0 to 1, for BinaryCrossEntropy
    for (Index row = 1; row < rows && loss.ignore_nan; row += 3)
      y[pdp::as_size(row * cols + row % cols)] = std::numeric_limits<float>::quiet_NaN();
    auto gradient = guarded(rows * cols, 3);
    const double scale = 1.0 / 8;
    LossSums sums{5, 6};
    const Copy<float> x_there{*device, x}, y_there{*device, y};
    const Copy<double> scale_there{*device, {scale}};
    Copy<float> gradient_there{*device, gradient};
    Copy<LossSums> sums_there{*device, {sums}};
    loss(Cpu{}, Matrix<const float>{x.data(), rows, cols}, std::span<const float>{y}, &scale,
         writes ? Matrix<float>{gradient.data(), rows, cols} : Matrix<float>{}, &sums);
    loss(*device, x_there.matrix(rows, cols), y_there.read(), scale_there.read().data(),
         writes ? gradient_there.matrix(rows, cols) : Matrix<float>{}, sums_there.data());
    INFO(rows << " rows of " << cols);
    CHECK(sums_there.values().front().loss == Approx(sums.loss).epsilon(1e-6));
    CHECK(sums_there.values().front().correct == 6);
    CHECK(support::difference(gradient_there.values(), gradient) < few_ulps);
  };
  for (const Index rows : {0, 1, 70})
    for (const Index cols : {1, 33, 784})
      for (const bool ignores : {false, true}) {
        check(pdp::loss::L1{.ignore_nan = ignores}, rows, cols, true);
        check(pdp::loss::HuberLoss{.delta = 0.5f, .ignore_nan = ignores}, rows, cols, true);
        check(pdp::loss::BinaryCrossEntropy{.ignore_nan = ignores}, rows, cols, true);
        check(pdp::loss::Elementwise{LogCosh{}, {.ignore_nan = ignores}}, rows, cols, true);  // log_cosh.cu has its kernel
        check(pdp::loss::HuberLoss{.ignore_nan = ignores}, rows, cols, false);
      }
}

TEST_CASE("A cross-entropy with class weights on a GPU matches that on a CPU, whole and in parts", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  constexpr Index rows = 70, cols = 34, own = cols / 2, numbers = 5;
  const double scale = 1.0 / 8, smoothing = GENERATE(0.0, 0.2);
  const Copy<double> scale_there{*device, {scale}};
  const auto x = support::normal(rows * cols, 1);
  const auto classes = some_classes(rows, cols);
  std::vector<float> weights;
  double sum = 0;
  for (int c = 0; c < cols; ++c) sum += static_cast<double>(weights.emplace_back(static_cast<float>(c % 7) / 3));
  const Copy<float> there{*device, x}, weights_there{*device, weights};
  const Copy<std::int32_t> classes_there{*device, classes};
  const pdp::ClassWeights by_class{weights, sum}, by_class_there{weights_there.read(), sum};
  constexpr std::int32_t ignored = 3;

  std::vector<float> gradient(x.size());
  LossSums sums{1, 2};
  softmax_cross_entropy(Cpu{}, Matrix<const float>{x.data(), rows, cols}, std::span<const std::int32_t>{classes}, &scale,
                        Matrix<float>{gradient.data(), rows, cols}, &sums, ignored, smoothing, by_class);
  Copy<float> gradient_there{*device, std::vector<float>(x.size(), 9.0f)};
  Copy<LossSums> sums_there{*device, {LossSums{1, 2}}};
  softmax_cross_entropy(*device, there.matrix(rows, cols), classes_there.read(), scale_there.read().data(),
                        gradient_there.matrix(rows, cols), sums_there.data(), ignored, smoothing, by_class_there);
  CHECK(sums_there.values().front().loss == Approx(sums.loss).epsilon(1e-6));
  CHECK(sums_there.values().front().correct == sums.correct);
  CHECK(support::difference(gradient_there.values(), gradient) < few_ulps);

  std::vector<float> halves[2];
  Copy<float> parts{*device, std::vector<float>(pdp::as_size(2 * rows * numbers))};
  for (Index part = 0; part < 2; ++part) {
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < own; ++c) halves[part].push_back(x[pdp::as_size(r * cols + part * own + c)]);
    const Copy<float> half{*device, halves[part]};
    softmax_part(*device, half.matrix(rows, own), classes_there.read(), part * own, cols,
                 Matrix<float>{parts.data() + part * rows * numbers, rows, numbers}, ignored, smoothing, by_class_there);
  }
  for (Index part = 0; part < 2; ++part) {
    std::vector<float> wanted;
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < own; ++c) wanted.push_back(gradient[pdp::as_size(r * cols + part * own + c)]);
    const Copy<float> half{*device, halves[part]};
    Copy<float> found{*device, std::vector<float>(wanted.size(), 9.0f)};
    Copy<LossSums> found_sums{*device, {LossSums{1, 2}}};
    softmax_cross_entropy_of_parts(*device, half.matrix(rows, own), classes_there.read(), part * own,
                                   std::as_const(parts).matrix(2 * rows, numbers), scale_there.read().data(), found.matrix(rows, own),
                                   found_sums.data(), ignored, smoothing, cols, by_class_there);
    CHECK(found_sums.values().front().loss == Approx(sums.loss).epsilon(1e-6));
    CHECK(found_sums.values().front().correct == sums.correct);
    CHECK(support::difference(found.values(), wanted) < few_ulps);
  }

  const std::vector<std::int32_t> wrong(pdp::as_size(rows), cols + 5);  // a label that is no class reads no weight
  const Copy<std::int32_t> wrong_there{*device, wrong};
  softmax_cross_entropy(*device, there.matrix(rows, cols), wrong_there.read(), scale_there.read().data(), gradient_there.matrix(rows, cols),
                        sums_there.data(), ignored, smoothing, by_class_there);
  CHECK(std::isnan(sums_there.values().front().loss));
}

TEST_CASE("Losses on a GPU ignore the same rows as those on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  constexpr Index rows = 70, cols = 33;
  constexpr float nothing = std::numeric_limits<float>::quiet_NaN();
  const double scale = 1.0 / 8;
  const Copy<double> scale_there{*device, {scale}};
  const auto x = support::normal(rows * cols, 1);
  auto outputs = x, targets = support::normal(rows * cols, 2);
  auto classes = some_classes(rows, cols);
  const auto check = [&](const auto& compute) {
    std::vector<float> gradient(outputs.size(), 9.0f);
    LossSums sums{1, 2};
    Copy<float> gradient_there{*device, gradient};
    Copy<LossSums> sums_there{*device, {sums}};
    compute(false, Matrix<float>{gradient.data(), rows, cols}, &sums);
    compute(true, gradient_there.matrix(rows, cols), sums_there.data());
    CHECK(std::isfinite(sums.loss));
    CHECK(sums_there.values().front().loss == Approx(sums.loss).epsilon(1e-6));
    CHECK(sums_there.values().front().correct == sums.correct);
    CHECK(support::difference(gradient_there.values(), gradient) < few_ulps);
  };
  for (const std::int32_t ignored : {-100, 3}) {
    for (Index row = 0; row < rows; row += 3) {
      classes[pdp::as_size(row)] = ignored;
      outputs[pdp::as_size(row * cols + row % cols)] = nothing;
    }
    const Copy<float> there{*device, outputs};
    const Copy<std::int32_t> classes_there{*device, classes};
    check([&](bool on_device, Matrix<float> gradient, LossSums* sums) {
      if (on_device)
        softmax_cross_entropy(*device, there.matrix(rows, cols), classes_there.read(), scale_there.read().data(), gradient, sums, ignored);
      else
        softmax_cross_entropy(Cpu{}, Matrix<const float>{outputs.data(), rows, cols}, std::span<const std::int32_t>{classes}, &scale,
                              gradient, sums, ignored);
    });
    check([&](bool on_device, Matrix<float> gradient, LossSums* sums) {  // one part of one
      std::vector<float> parts(pdp::as_size(rows * 4));
      Copy<float> parts_there{*device, parts};
      if (on_device) {
        softmax_part(*device, there.matrix(rows, cols), classes_there.read(), 0, cols, parts_there.matrix(rows, 4), ignored);
        softmax_cross_entropy_of_parts(*device, there.matrix(rows, cols), classes_there.read(), 0,
                                       std::as_const(parts_there).matrix(rows, 4), scale_there.read().data(), gradient, sums, ignored);
      } else {
        const Matrix<const float> logits{outputs.data(), rows, cols};
        const std::span<const std::int32_t> labels{classes};
        softmax_part(Cpu{}, logits, labels, 0, cols, Matrix<float>{parts.data(), rows, 4}, ignored);
        softmax_cross_entropy_of_parts(Cpu{}, logits, labels, 0, Matrix<const float>{parts.data(), rows, 4}, &scale, gradient, sums,
                                       ignored);
      }
    });
  }
  for (Index row = 0; row < rows; row += 3) targets[pdp::as_size(row * cols + row % cols)] = nothing;
  const Copy<float> there{*device, x}, targets_there{*device, targets};
  check([&](bool on_device, Matrix<float> gradient, LossSums* sums) {
    if (on_device)
      squared_error(*device, there.matrix(rows, cols), targets_there.matrix(rows, cols), scale_there.read().data(), gradient, sums, true);
    else
      squared_error(Cpu{}, Matrix<const float>{x.data(), rows, cols}, Matrix<const float>{targets.data(), rows, cols}, &scale, gradient,
                    sums, true);
  });
}

TEST_CASE("fill_uniform on a GPU equals that on a CPU bit for bit", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const auto key = pdp::random::make_key(7, "0.weight");
  for (const pdp::random::Elements& elements :
       {pdp::random::Elements{}, pdp::random::Elements{.first = 5, .cols = 10, .begin = 3, .row_step = 1, .col_step = 20}}) {
    std::vector<float> values(1003);
    Copy<float> there{*device, values};
    fill_uniform(Cpu{}, key, 0.3, elements, std::span{values});
    fill_uniform(*device, key, 0.3, elements, there.span());
    CHECK(pdp::testing::same_bits(there.values(), values));
  }
}

TEST_CASE("convert to bfloat16 and back on a GPU equals that on a CPU bit for bit", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  auto values = support::normal(1001, 1);
  values.insert(values.end(), {NAN, INFINITY, -INFINITY, -0.0f, 3.4e38f, 1e-45f});
  const auto count = static_cast<Index>(values.size());
  std::vector<BFloat16> rounded(values.size());
  std::vector<float> back(values.size());
  const Copy<float> there{*device, values};
  Copy<BFloat16> rounded_there{*device, rounded};
  Copy<float> back_there{*device, back};
  convert(Cpu{}, Matrix<const float>{values.data(), 1, count}, Matrix<BFloat16>{rounded.data(), 1, count});
  convert(Cpu{}, Matrix<const BFloat16>{rounded.data(), 1, count}, Matrix<float>{back.data(), 1, count});
  convert(*device, there.matrix(1, count), rounded_there.matrix(1, count));
  convert(*device, std::as_const(rounded_there).matrix(1, count), back_there.matrix(1, count));
  CHECK(pdp::testing::same_bits(back_there.values(), back));
}

TEST_CASE("scale_loss and apply_gradient_rule on a GPU equal those on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const double square : {0.0, 4.0, 100.0, HUGE_VAL, std::nan("")})
    for (const double clip : {0.0, 1.0})
      for (const bool skips : {false, true})
        for (const bool scales : {false, true}) {
          const pdp::GradientRule rule{clip, skips, scales, {.interval = 3}};
          StepNumbers numbers{.info = {9, 1}, .scale = 0.125, .square = square};
          pdp::StepHistory history{.skipped = 2, .loss_scale = scales ? 8.0 : 1.0, .finite = 2};
          Copy<StepNumbers> numbers_there{*device, {numbers}};
          Copy<pdp::StepHistory> history_there{*device, {history}};
          scale_loss(Cpu{}, &numbers, &history);
          apply_gradient_rule(Cpu{}, &numbers, &history, rule);
          scale_loss(*device, numbers_there.data(), history_there.data());
          apply_gradient_rule(*device, numbers_there.data(), history_there.data(), rule);
          const StepNumbers found = numbers_there.values().front();
          CHECK(found.info.number == numbers.info.number);
          CHECK(found.scale == numbers.scale);
          CHECK(found.loss_scale == numbers.loss_scale);
          const auto equal = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
          CHECK((equal(found.norm, numbers.norm) && equal(found.factor, numbers.factor)));
          CHECK(found.skips == numbers.skips);
          const pdp::StepHistory after = history_there.values().front();
          CHECK(after.skipped == history.skipped);
          CHECK(after.loss_scale == history.loss_scale);
          CHECK(after.finite == history.finite);
        }
}

namespace {

template <std::size_t Fields, class Rule>
void check_update(const pdp::cuda::Device& device, const Rule& rule, std::size_t ranks, const StepNumbers& first) {
  constexpr std::size_t count = 1001;
  auto parameters = guarded(count, 1);
  std::vector<float> state(pdp::optim::needed_state_fields(rule) * count), copied = guarded(count, 3);
  Copy<float> parameters_there{device, parameters}, state_there{device, state}, copied_there{device, copied};
  for (std::int64_t step = 1; step <= 3; ++step) {
    StepNumbers numbers = first;
    numbers.info = {step, 1.0f / static_cast<float>(step)};
    const Copy<StepNumbers> numbers_there{device, {numbers}};
    std::vector<std::vector<float>> gradients;
    std::vector<Copy<float>> there;
    std::vector<const float*> from, from_there;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      gradients.push_back(support::normal(count, static_cast<int>(10 * step + static_cast<std::int64_t>(rank))));
    for (const auto& each : gradients) {
      from.push_back(each.data());
      there.emplace_back(device, each);
    }
    for (const auto& each : there) from_there.push_back(each.read().data());
    float* const to = copied.data();
    float* const to_there = copied_there.data();
    pdp::cpu::update<Fields>(Cpu{}, rule, &numbers, std::span{parameters}.first(count), std::span<const float* const>{from},
                             std::span{state}, std::span<float* const>{&to, 1});
    pdp::cuda::update<Fields>(device, rule, numbers_there.read().data(), parameters_there.span().first(count),
                              std::span<const float* const>{from_there}, state_there.span(), std::span<float* const>{&to_there, 1});
  }
  CHECK(support::difference(parameters_there.values(), parameters) < 1e-5);
  CHECK(support::difference(state_there.values(), state) < 1e-5);
  CHECK(support::difference(copied_there.values(), copied) < 1e-5);
}

}  // namespace

TEST_CASE("update on a GPU matches that on a CPU for each optimizer and rejects more than 8 ranks", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const std::size_t ranks : {std::size_t{1}, std::size_t{3}})
    for (const StepNumbers& numbers : {StepNumbers{}, StepNumbers{.loss_scale = 2, .factor = 0.25}, StepNumbers{.skips = true}}) {
      check_update<0>(*device, pdp::optim::AddChange{}, ranks, numbers);
      check_update<1>(*device, pdp::optim::Sgd{.lr = 0.1f, .weight_decay = 0.01f}, ranks, numbers);
      check_update<1>(*device, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f, .nesterov = true}, ranks, numbers);
      check_update<2>(*device, pdp::optim::Adam{.lr = 0.01f, .weight_decay = 0.1f}, ranks, numbers);
      check_update<2>(*device, pdp::optim::AdamW{.lr = 0.01f}, ranks, numbers);
      check_update<1>(*device, Lion{.lr = 0.01f, .weight_decay = 0.1f}, ranks, numbers);  // lion.cu has its kernel
    }
  const std::vector<const float*> many(9, nullptr);
  CHECK_THROWS_WITH(pdp::cuda::update<1>(*device, pdp::optim::Sgd{}, nullptr, std::span<float>{}, std::span<const float* const>{many},
                                         std::span<float>{}),
                    Contains("at most 8 gradients and 8 copies; found 9 gradients and 0 copies"));
}
