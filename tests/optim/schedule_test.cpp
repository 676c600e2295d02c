#include <pdp/optim/schedule.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <pdp/core/error.hpp>

#include "catch.hpp"

namespace optim = pdp::optim;

TEST_CASE("Constant has the factor 1 in every step", "[optim]") {
  for (const std::int64_t step : {0, 1, 1'000'000}) CHECK(optim::Constant{}.factor(step) == 1);
}

TEST_CASE("Linear follows a line to its final factor and stays there", "[optim]") {
  const std::int64_t steps = GENERATE(1, 2, 7, 1000);
  const float to = GENERATE(0.0f, 0.3f, 1.0f, 2.0f);
  const optim::Linear schedule{.steps = steps, .to = to};
  for (std::int64_t step = 0; step <= steps; ++step) {
    const double way = static_cast<double>(step) / static_cast<double>(steps);
    CHECK(static_cast<double>(schedule.factor(step)) == Approx(1 + way * (static_cast<double>(to) - 1)).margin(1e-7));
  }
  CHECK(schedule.factor(0) == 1);
  for (const std::int64_t step : {steps, steps + 1, 10 * steps}) CHECK(schedule.factor(step) == to);
}

TEST_CASE("Linear to 0.3 has the factor 1 - 0.7 s / n in step s of n", "[optim]") {
  constexpr std::int64_t n = 105;
  const optim::Linear schedule{.steps = n, .to = 0.3f};
  for (std::int64_t s = 0; s <= n; ++s)
    CHECK(static_cast<double>(schedule.factor(s)) == Approx(1 - 0.7 * static_cast<double>(s) / n).epsilon(1e-7));
}

TEST_CASE("Cosine falls along half a wave to its final factor and stays there", "[optim]") {
  const std::int64_t steps = GENERATE(1, 2, 8, 1000);
  const float to = GENERATE(0.0f, 0.1f);
  const optim::Cosine schedule{.steps = steps, .to = to};
  CHECK(schedule.factor(0) == 1);
  for (const std::int64_t step : {steps, steps + 1, 10 * steps}) CHECK(schedule.factor(step) == to);
  for (std::int64_t step = 0; step < steps; ++step) CHECK(schedule.factor(step + 1) < schedule.factor(step));
  if (steps % 8 == 0) {
    const double low = static_cast<double>(to);
    CHECK(static_cast<double>(schedule.factor(steps / 2)) == Approx((1 + low) / 2));
    CHECK(static_cast<double>(schedule.factor(steps / 4)) == Approx(low + (1 - low) * (1 + std::sqrt(0.5)) / 2));
  }
}

TEST_CASE("WarmUp rises to 1 in its last step, then starts the next schedule at step 0", "[optim]") {
  const optim::WarmUp<optim::Cosine> schedule{.steps = 4, .then = {.steps = 10, .to = 0.1f}};
  CHECK(schedule.factor(0) == 0.25f);
  CHECK(schedule.factor(1) == 0.5f);
  CHECK(schedule.factor(3) == 1);
  for (std::int64_t step = 4; step < 30; ++step) CHECK(schedule.factor(step) == (optim::Cosine{.steps = 10, .to = 0.1f}.factor(step - 4)));
  CHECK(schedule.factor(4) == 1);
  CHECK(schedule.factor(14) == 0.1f);
}

TEST_CASE("WarmUp stays at 1 without a next schedule, and has no effect with 0 steps", "[optim]") {
  CHECK(optim::WarmUp<>{.steps = 3}.factor(2) == 1);
  CHECK(optim::WarmUp<>{.steps = 3}.factor(100) == 1);
  const optim::WarmUp<optim::Linear> none{.steps = 0, .then = {.steps = 10, .to = 0}};
  for (std::int64_t step = 0; step < 12; ++step) CHECK(none.factor(step) == (optim::Linear{.steps = 10, .to = 0}.factor(step)));
}

TEST_CASE("Schedules are constexpr, and Schedule accepts a user-written one", "[optim]") {
  struct Half {
    [[nodiscard]] constexpr float factor(std::int64_t step) const { return step < 10 ? 1.0f : 0.5f; }
  };
  struct Wrong {
    [[nodiscard]] double factor(std::int64_t) const { return 1; }
  };
  static_assert(optim::Schedule<Half> && optim::Schedule<optim::WarmUp<Half>> && !optim::Schedule<Wrong> && !optim::Schedule<float>);
  static_assert(optim::Linear{.steps = 10, .to = 0}.factor(5) == 0.5f && optim::WarmUp<>{.steps = 2}.factor(0) == 0.5f);
  CHECK(optim::WarmUp<Half>{.steps = 5}.factor(15) == 0.5f);
}

namespace {

/// Checks the factors of steps 0, 1, 2, ... against the learning rates of PyTorch 2.15 for a rate of 1.
template <optim::Schedule S, std::size_t n>
void check_factors(const S& schedule, const std::array<double, n>& expected) {
  for (std::size_t step = 0; step < n; ++step) {
    CAPTURE(step);
    CHECK(static_cast<double>(schedule.factor(static_cast<std::int64_t>(step))) == Approx(expected[step]).epsilon(2e-6));
  }
}

}  // namespace

TEST_CASE("StepDecay and Exponential have the factors of PyTorch's StepLR and ExponentialLR", "[optim]") {
  check_factors(optim::StepDecay{.steps = 3, .by = 0.5f}, std::array{1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25});
  check_factors(optim::Exponential{.steps = 1, .by = 0.9f}, std::array{1.0, 0.9, 0.81, 0.729, 0.6561});
  CHECK(optim::Exponential{.steps = 100, .by = 0.25f}.factor(50) == 0.5f);
  CHECK(optim::StepDecay{.steps = 10}.factor(1'000'000) == 0);
}

TEST_CASE("CosineRestarts has the factors of PyTorch's CosineAnnealingWarmRestarts", "[optim]") {
  check_factors(optim::CosineRestarts{.steps = 3, .growth = 2, .to = 0.1f},
                std::array{1.0, 0.775, 0.325, 1.0, 0.9397114317, 0.775, 0.55, 0.325, 0.1602885683, 1.0, 0.9846666218, 0.9397114317,
                           0.8681980515, 0.775});
  const optim::CosineRestarts even{.steps = 5};
  for (const std::int64_t step : {0, 3, 4}) CHECK(even.factor(1'000'000'000'000 + step) == even.factor(step));
}

TEST_CASE("OneCycle has the factors of PyTorch's OneCycleLR and then stays", "[optim]") {
  check_factors(
      optim::OneCycle{.steps = 20},
      std::array{0.04, 0.1316718427, 0.3716718427, 0.6683281573, 0.9083281573, 1.0, 0.9874640062, 0.950484632, 0.8909161776, 0.81174565395,
                 0.7169430018, 0.6112620219, 0.500002, 0.3887419781, 0.283060998, 0.18825834605, 0.1090878224, 0.0495193680, 0.0125399938});
  check_factors(optim::OneCycle{.steps = 7, .rise = 0.45f, .from = 0.1f, .to = 0.001f},
                std::array{0.1, 0.5007829562, 0.9892341449, 0.8845907874, 0.5310502496, 0.1582717134});
  for (const std::int64_t step : {19, 20, 1000}) CHECK(optim::OneCycle{.steps = 20}.factor(step) == 4e-6f);
  CHECK(optim::OneCycle{.steps = 1}.factor(0) == 4e-6f);
  CHECK(optim::OneCycle{.steps = 3, .rise = 0}.factor(0) < 1);
}

TEST_CASE("A schedule without steps has finite factors", "[optim]") {
  for (const std::int64_t step : {0, 1, 7}) {
    CHECK(std::isfinite(optim::StepDecay{.steps = 0}.factor(step)));
    CHECK(std::isfinite(optim::Exponential{.steps = 0}.factor(step)));
    CHECK(std::isfinite(optim::CosineRestarts{.steps = 0, .growth = 2}.factor(step)));
    CHECK(std::isfinite(optim::OneCycle{.steps = 0}.factor(step)));
  }
}

TEST_CASE("optim::check rejects parameters of a schedule that are out of range, and says which", "[optim]") {
  const auto is_told = [](const auto& schedule, const char* words) {
    CHECK_THROWS_AS(optim::check(schedule), pdp::ConfigError);
    CHECK_THROWS_WITH(optim::check(schedule), words);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  is_told(optim::Linear{.steps = -1}, "the learning-rate schedule Linear has steps = -1; give it a number of steps from 0 on");
  is_told(optim::StepDecay{.steps = 0}, "the learning-rate schedule StepDecay has steps = 0; give it a number of steps from 1 on");
  is_told(optim::OneCycle{.steps = 9, .rise = 1.5f}, "the learning-rate schedule OneCycle has rise = 1.5; give it a number from 0 to 1");
  is_told(optim::CosineRestarts{.steps = 9, .growth = 0},
          "the learning-rate schedule CosineRestarts has growth = 0; give it a number from 1 to 1000000");
  is_told(optim::WarmUp<optim::Exponential>{.steps = 3, .then = {.steps = 1, .by = -0.5f}},
          "the learning-rate schedule Exponential has by = -0.5; give it a number from 0 to 1000000");
  CHECK_THROWS_AS((optim::WarmUp<>{.steps = -1}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::Linear{.to = nan}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::Cosine{.steps = -5}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::Cosine{.to = -1}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::StepDecay{.by = nan}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::Exponential{.steps = 0}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::CosineRestarts{.steps = 0}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::CosineRestarts{.to = nan}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::OneCycle{.from = -1}.check()), pdp::ConfigError);
  CHECK_THROWS_AS((optim::OneCycle{.to = std::numeric_limits<float>::infinity()}.check()), pdp::ConfigError);
}

TEST_CASE("optim::check accepts every schedule's defaults, no steps if there is an end, and schedules without check()", "[optim]") {
  struct Own {
    [[nodiscard]] float factor(std::int64_t) const { return 1; }
  };
  CHECK_NOTHROW(optim::check(Own{}));
  CHECK_NOTHROW(optim::check(optim::Constant{}));
  CHECK_NOTHROW(optim::check(optim::WarmUp<Own>{.steps = 0}));
  CHECK_NOTHROW(optim::check(optim::Linear{.steps = 0, .to = 2}));
  CHECK_NOTHROW(optim::check(optim::Cosine{.steps = 0}));
  CHECK_NOTHROW(optim::check(optim::StepDecay{}));
  CHECK_NOTHROW(optim::check(optim::Exponential{}));
  CHECK_NOTHROW(optim::check(optim::CosineRestarts{}));
  CHECK_NOTHROW(optim::check(optim::OneCycle{.steps = 0}));
}
