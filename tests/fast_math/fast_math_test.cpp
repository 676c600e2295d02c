// Compiled with -ffast-math, under which a compiler may assume that no number is NaN or infinite.
#include <pdp/comm/operation.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/cpu/activation.hpp>
#include <pdp/cpu/loss.hpp>
#include <pdp/cpu/pool.hpp>
#include <pdp/cpu/simd/elementary.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/softmax.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/functions.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <cstdint>
#include <vector>

#include "catch.hpp"

namespace fast_math_test {

namespace comm = pdp::comm;
namespace cpu = pdp::cpu;
namespace nn = pdp::nn;
namespace optim = pdp::optim;
using pdp::BFloat16, pdp::Float16, pdp::Index, pdp::Shape;
using pdp::plan::NonFinite;
using Samples = pdp::data::InMemory<std::int32_t>;

static_assert(pdp::assumes_finite, "this test is for -ffast-math");

namespace {

/// Returns a number with bits that the compiler cannot know.
template <class T>
T from_bits(std::uint64_t bits) {
  const volatile auto hidden = static_cast<pdp::detail::BitsOf<T>>(bits);
  return std::bit_cast<T>(static_cast<pdp::detail::BitsOf<T>>(hidden));
}
float nan() { return from_bits<float>(0x7fc00000); }
float infinite() { return from_bits<float>(0x7f800000); }

std::vector<cpu::Cpu> cpus() {
  std::vector<cpu::Cpu> all;
  for (const cpu::Simd registers : {cpu::Simd::baseline, cpu::Simd::avx2, cpu::Simd::avx512})
    if (registers <= cpu::widest_simd()) all.push_back({.products = cpu::Products::eigen, .registers = registers});
  all.push_back({});
  return all;
}

constexpr nn::Sequential relu_model{nn::Linear{6, 35}, nn::Relu{}, nn::Linear{35, 3}};
constexpr nn::Sequential tanh_model{nn::Linear{6, 35}, nn::Tanh{}, nn::Linear{35, 3}};

/// Returns 8 batches of 16 samples. Batch 3 has `bad` in a row of rank 1 of 2.
Samples samples(float bad) {
  auto x = pdp::testing::normal(128 * 6, 11);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 6) classes.push_back(row[0] > 0 ? 2 : row[1] > 0 ? 1 : 0);
  x[(3 * 16 + 11) * 6 + 4] = bad;
  return {Shape{6}, x, classes};
}

struct Fit {
  int skipped = 0;
  bool finite = true;
  double first_loss = 0, last_loss = 0;
};

template <class Strategy, class Model>
Fit fit(comm::Thread& world, const Strategy& strategy, const Model& model, const pdp::TrainerOptions& options, const cpu::Cpu& cpu,
        float bad) {
  const pdp::Task task{model, pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 0.01f}};
  pdp::Trainer trainer{world, strategy, task, options, cpu};
  Fit found;
  trainer.fit(
      samples(bad), {.epochs = 3, .shuffle = false, .progress = false}, [](const pdp::Epoch&) {},
      [&](std::int64_t step, const pdp::engine::Totals& totals) {
        if (totals.skipped) ++found.skipped;
        if (step == 0) found.first_loss = totals.mean_loss();
        if (!totals.skipped) found.last_loss = totals.mean_loss();
      });
  for (const auto& tensor : trainer.parameters())
    for (const float value : tensor.values) found.finite = found.finite && pdp::is_finite(value);
  return found;
}

template <class Strategy, class Model>
void check_skips(const Strategy& strategy, const Model& model) {
  for (const cpu::Cpu& cpu : cpus())
    for (const float bad : {nan(), -nan(), infinite(), -infinite()})
      for (const double clip_norm : {0.0, 0.5}) {
        const auto found = pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
          return fit(world, strategy, model, {.global_batch = 16, .clip_norm = clip_norm, .non_finite = NonFinite::skip}, cpu, bad);
        });
        for (const Fit& each : found) {
          CHECK(each.skipped == 3);  // one batch of each epoch
          CHECK(each.finite);
          CHECK(each.last_loss < each.first_loss);
        }
      }
}

template <class T>
void check_activations() {
  for (const cpu::Cpu& cpu : cpus())
    for (const Index count : {1, 3, 16, 37}) {
      std::vector<T> x(static_cast<std::size_t>(count)), y(x.size());
      for (std::size_t bad = 0; bad < x.size(); ++bad) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 2 == 0 ? -1 - static_cast<int>(i) : static_cast<int>(i));
        x[bad] = static_cast<T>(bad % 2 == 0 ? nan() : -nan());
        const pdp::Matrix<const T> from{x.data(), 1, count};
        cpu::relu<T>(cpu, from, {y.data(), 1, count});
        for (std::size_t i = 0; i < x.size(); ++i)
          CHECK((i == bad ? pdp::is_nan(y[i]) : pdp::bits_of(y[i]) == pdp::bits_of(i % 2 == 0 ? T{} : x[i])));
        cpu::hyperbolic_tangent<T>(cpu, from, {y.data(), 1, count});
        for (std::size_t i = 0; i < x.size(); ++i) CHECK(pdp::is_nan(y[i]) == (i == bad));
      }
    }
}

template <class T>
void check_reductions() {
  const T bad = static_cast<T>(nan()), one = static_cast<T>(1.0f), two = static_cast<T>(2.0f);
  const T zero = from_bits<T>(0), negative_zero = from_bits<T>(std::uint64_t{1} << (8 * sizeof(T) - 1));
  for (const auto& [left, right] : {std::pair{bad, one}, std::pair{one, bad}, std::pair{bad, bad}}) {
    CHECK(pdp::is_nan(comm::Min::combine(left, right)));
    CHECK(pdp::is_nan(comm::Max::combine(left, right)));
    CHECK(pdp::is_nan(comm::Sum::combine(left, right)));
  }
  CHECK(pdp::bits_of(comm::Min::combine(two, one)) == pdp::bits_of(one));
  CHECK(pdp::bits_of(comm::Max::combine(two, one)) == pdp::bits_of(two));
  for (const auto& [left, right] : {std::pair{zero, negative_zero}, std::pair{negative_zero, zero}}) {
    CHECK(pdp::is_negative(comm::Min::combine(left, right)));
    CHECK(!pdp::is_negative(comm::Max::combine(left, right)));
  }
}

template <class T>
void check_bits(std::uint64_t largest) {
  const std::uint64_t sign = std::uint64_t{1} << (8 * sizeof(T) - 1);
  for (const std::uint64_t side : {std::uint64_t{0}, sign}) {
    CHECK(pdp::is_finite(from_bits<T>(side | largest)));
    CHECK(pdp::is_finite(from_bits<T>(side)));
    CHECK(pdp::is_infinite(from_bits<T>(side | (largest + 1))));
    CHECK(!pdp::is_finite(from_bits<T>(side | (largest + 1))));
    CHECK(!pdp::is_nan(from_bits<T>(side | (largest + 1))));
    CHECK(pdp::is_nan(from_bits<T>(side | (largest + 2))));
    CHECK(pdp::is_nan(from_bits<T>(side | (sign - 1))));
    CHECK(pdp::is_negative(from_bits<T>(side)) == (side != 0));
  }
}

}  // namespace

TEST_CASE("Training with -ffast-math skips steps whose gradient is not finite", "[fast_math]") {
  check_skips(pdp::strategy::DataParallel{}, relu_model);
  check_skips(pdp::strategy::DataParallel{}, tanh_model);
  check_skips(pdp::strategy::Zero{.stage = 3}, relu_model);
}

TEST_CASE("Training with -ffast-math stops at a gradient that is not finite, and names the rank", "[fast_math]") {
  for (const cpu::Cpu& cpu : cpus())
    for (const float bad : {nan(), infinite()}) {
      const auto thrown = pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
        try {
          fit(world, pdp::strategy::DataParallel{}, relu_model, {.global_batch = 16, .non_finite = NonFinite::stop}, cpu, bad);
        } catch (const pdp::NonFiniteGradient& error) {
          world.barrier();
          return std::string{error.what()};
        }
        return std::string{};
      });
      for (const std::string& each : thrown) CHECK_THAT(each, Contains("step 3") && Contains("on rank 1"));
    }
}

TEST_CASE("GradientPolicy and parse_number reject NaN and infinity with -ffast-math", "[fast_math]") {
  for (const float bad : {nan(), -nan(), infinite(), -infinite(), -1.0f}) {
    CHECK_THROWS_AS(pdp::plan::GradientPolicy{.clip_norm = static_cast<double>(bad)}.check(), pdp::ConfigError);
    for (double pdp::LossScaling::*member : {&pdp::LossScaling::initial, &pdp::LossScaling::growth, &pdp::LossScaling::backoff}) {
      pdp::LossScaling scaling;
      scaling.*member = static_cast<double>(bad);
      CHECK_THROWS_AS(pdp::plan::GradientPolicy{.loss_scaling = scaling}.check(), pdp::ConfigError);
    }
  }
  CHECK_NOTHROW(pdp::plan::GradientPolicy{.clip_norm = 1, .loss_scaling = pdp::LossScaling{}}.check());
  CHECK_THROWS_AS(pdp::launch::parse_number("seconds", "nan", 0.0, 1e8), pdp::UsageError);
  CHECK_THROWS_AS(pdp::launch::parse_number("seconds", "inf", 0.0, 1e8), pdp::UsageError);
  CHECK(pdp::launch::parse_number("seconds", "2.5", 0.0, 1e8) == 2.5);
}

TEST_CASE("apply_gradient_rule lowers the loss scale with -ffast-math if a gradient overflows", "[fast_math]") {
  for (const float bad : {nan(), infinite()}) {
    pdp::StepNumbers numbers;
    numbers.square = static_cast<double>(bad);
    pdp::StepHistory history{.loss_scale = 1024};
    numbers.loss_scale = history.loss_scale;
    apply_gradient_rule(numbers, history, {.skips_non_finite = true, .scales = true});
    CHECK(numbers.skips);
    CHECK(history.loss_scale == 512);
  }
}

TEST_CASE("detail::decimal prints NaN and infinity with -ffast-math", "[fast_math]") {
  CHECK_THAT(pdp::detail::decimal(static_cast<double>(nan())), EndsWith("nan"));
  CHECK_THAT(pdp::detail::decimal(static_cast<double>(infinite())), EndsWith("inf"));
  CHECK(pdp::detail::decimal(0.12345) == "0.1235");
}

TEST_CASE("relu and hyperbolic_tangent propagate NaN with -ffast-math", "[fast_math]") {
  check_activations<float>();
  check_activations<double>();
}

TEST_CASE("Comparisons of Lanes and the functions of optimizer rules are right for NaN with -ffast-math", "[fast_math]") {
  for (const cpu::Cpu& each : cpus())
    cpu::with_simd(each.simd(), []<cpu::Simd S>() {
      using V = cpu::Lanes<float, S>;
      const V bad = V::all(nan()), one = V::all(1);
      const auto taken = [](const auto& mask) { return mask.select(V::all(1), 0).vector[0] == 1; };
      CHECK_FALSE(
          (taken(bad > one) || taken(bad >= one) || taken(bad < one) || taken(bad <= one) || taken(bad == one) || taken(bad == bad)));
      CHECK_FALSE((taken(one > bad) || taken(one >= bad) || taken(one < bad) || taken(one <= bad) || taken(one == bad)));
      CHECK((taken(bad != one) && taken(one != bad) && taken(bad != bad)));
      CHECK((taken(one == one) && taken(one >= 1) && taken(V{} == -V{}) && taken(V::all(infinite()) > one)));
      for (const V& value :
           {optim::sign(bad), optim::abs(bad), optim::min(bad, one), optim::min(1, bad), optim::max(bad, 1), optim::max(one, bad)})
        CHECK(pdp::is_nan(value.vector[0]));
    });
}

TEST_CASE("softmax_cross_entropy with -ffast-math gives NaN for a row with NaN and counts it as wrong", "[fast_math]") {
  for (const cpu::Cpu& cpu : cpus())
    for (const std::size_t bad : {0u, 1u, 5u, 18u}) {
      std::vector<float> logits(19, 0.5f), gradient(19);
      logits[bad] = nan();
      const double scale = 1;
      const std::vector<std::int32_t> classes{5};
      pdp::LossSums sums;
      cpu::softmax_cross_entropy<float>(cpu, {logits.data(), 1, 19}, classes, &scale, {gradient.data(), 1, 19}, &sums);
      CHECK(pdp::is_nan(sums.loss));
      if (bad == 0 || bad == 5) CHECK(sums.correct == 0);
      for (const float value : gradient) CHECK(pdp::is_nan(value));
    }
}

TEST_CASE("max_pool and softmax propagate NaN with -ffast-math", "[fast_math]") {
  const auto check = [](const cpu::Cpu& on, const pdp::Pooling& how, const std::vector<float>& x, std::size_t window) {
    std::vector<float> y(pdp::as_size(how.windows()));
    max_pool(on, how, pdp::Matrix<const float>{x.data(), 1, how.positions()}, pdp::Matrix<float>{y.data(), 1, how.windows()});
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(pdp::is_nan(y[i]) == (i == window));
  };
  for (const cpu::Cpu& on : cpus())
    for (const std::size_t at : {0u, 1u, 8u, 9u}) {
      std::vector<float> x(16, 1.0f);
      x[at] = nan();
      check(on, {.vertical = {.extent = 2, .size = 2, .stride = 2}, .horizontal = {.extent = 8, .size = 2, .stride = 2}}, x, 0);
      check(on, {.vertical = {.extent = 2, .size = 2}, .horizontal = {.extent = 8, .size = 2, .stride = 3}}, x, 0);
    }
  const std::vector<float> x{1, nan(), 3, 1, 2, 3};
  for (const cpu::Cpu& on : cpus()) {
    std::vector<float> y(6);
    softmax(on, pdp::Matrix<const float>{x.data(), 2, 3}, pdp::Matrix<float>{y.data(), 2, 3});
    for (std::size_t i = 0; i < 6; ++i) CHECK(pdp::is_nan(y[i]) == (i < 3));
  }
}

TEST_CASE("log and log1p of Lanes with -ffast-math are right for zeros, NaN and infinity", "[fast_math]") {
  for (const cpu::Cpu& on : cpus())
    cpu::with_simd(on.simd(), []<cpu::Simd S>() {
      using V = cpu::Lanes<float, S>;
      const auto first = [](const V& lanes) { return lanes.vector[0]; };
      for (const float wrong : {nan(), -1.5f, -infinite()})
        CHECK((pdp::is_nan(first(log(V::all(wrong)))) && pdp::is_nan(first(log1p(V::all(wrong))))));
      const auto is_lowest = [](float value) { return pdp::is_infinite(value) && pdp::is_negative(value); };
      CHECK((is_lowest(first(log(V{}))) && is_lowest(first(log1p(V::all(-1))))));
      const float of_infinity = first(log(V::all(infinite())));
      CHECK((pdp::is_infinite(of_infinity) && !pdp::is_negative(of_infinity)));
      CHECK(first(log(V::all(2))) == Approx(0.69314718));
      CHECK(first(log1p(V::all(1e-9f))) == Approx(1e-9));
    });
}

TEST_CASE("Elementwise losses with -ffast-math give NaN for a target of NaN, or ignore its row", "[fast_math]") {
  for (const cpu::Cpu& cpu : cpus())
    for (const std::size_t bad : {0u, 1u, 5u, 18u}) {
      const std::vector<float> output(19, 0.5f);
      std::vector<float> target(19), gradient(19, 9.0f);
      target[bad] = nan();
      const double scale = 1;
      const auto sum = [&](const auto& loss) {
        pdp::LossSums sums;
        loss(cpu, pdp::Matrix<const float>{output.data(), 1, 19}, std::span<const float>{target}, &scale,
             pdp::Matrix<float>{gradient.data(), 1, 19}, &sums);
        return sums.loss;
      };
      CHECK(pdp::is_nan(sum(pdp::loss::L1{})));
      CHECK(pdp::is_nan(gradient[bad]));
      CHECK(pdp::is_nan(sum(pdp::loss::HuberLoss{})));
      CHECK(pdp::is_nan(gradient[bad]));
      CHECK_THROWS_AS(sum(pdp::loss::BinaryCrossEntropy{}), pdp::ConfigError);
      CHECK(sum(pdp::loss::HuberLoss{.ignore_nan = true}) == 0);
      CHECK(sum(pdp::loss::BinaryCrossEntropy{.ignore_nan = true}) == 0);
      for (const float value : gradient) CHECK(value == 0);
    }
}

TEST_CASE("Min, Max and Sum propagate NaN with -ffast-math, and Min and Max order -0 below 0", "[fast_math]") {
  check_reductions<float>();
  check_reductions<double>();
  check_reductions<Float16>();
  check_reductions<BFloat16>();
}

TEST_CASE("is_nan, is_infinite, is_finite and is_negative are right for all types with -ffast-math", "[fast_math]") {
  check_bits<Float16>(0x7bff);
  check_bits<BFloat16>(0x7f7f);
  check_bits<float>(0x7f7fffff);
  check_bits<double>(0x7fefffffffffffff);
  CHECK(pdp::is_nan(BFloat16{from_bits<float>(0x7fffffff)}));  // rounding must not carry into the sign
  CHECK(pdp::is_nan(BFloat16{from_bits<float>(0x7f800001)}));  // truncation must not clear the last set bit of the mantissa
  CHECK(pdp::is_nan(pdp::not_a_number<double>()));
}

}  // namespace fast_math_test
