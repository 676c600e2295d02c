#include <pdp/optim/functions.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "../examples/docs/lion.hpp"
#include "catch.hpp"
#include "optim/sequence.hpp"

namespace optim = pdp::optim;

namespace functions_test {

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
constexpr std::array values{0.0f, -0.0f, 1.0f, -1.0f, 2.5f, -2.5f, 1e-30f, -1e-30f, 3e38f, infinite, -infinite, none};

/// Writes the result of a function to the parameter. The gradient is the second argument.
template <class Function>
struct Applied {
  Function function;
  template <class V>
  struct State {};
  template <class V>
  void update(V& parameter, const V& gradient, State<V>&, const pdp::StepInfo&) const {
    parameter = function(parameter, gradient);
  }
};

/// Compares a function of vectors with a function of numbers, for all pairs of values and for the registers of this processor.
template <class Function, class Expected>
void check(const Function& function, const Expected& expected) {
  std::vector<float> left, right;
  for (const float a : values)
    for (const float b : values) {
      left.push_back(a);
      right.push_back(b);
      const float found = function(a, b), wanted = expected(a, b);
      INFO(a << " and " << b);
      CHECK((std::isnan(wanted) ? std::isnan(found) : found == wanted));
    }
  for (const auto simd : support::registers()) {
    std::vector<float> found = left, no_state;
    support::update<0>(pdp::cpu::Cpu{.registers = simd}, Applied<Function>{function}, pdp::StepInfo{}, std::span{found},
                       std::span<const float>{right}, std::span{no_state});
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float wanted = expected(left[i], right[i]);
      INFO(left[i] << " and " << right[i]);
      CHECK((std::isnan(wanted) ? std::isnan(found[i]) : found[i] == wanted));
    }
  }
}

}  // namespace

TEST_CASE("abs and sign of numbers and vectors keep NaN, and the sign of zero is zero", "[optim]") {
  check([](const auto& a, const auto&) { return optim::abs(a); }, [](float a, float) { return std::abs(a); });
  check([](const auto& a, const auto&) { return optim::sign(a); }, [](float a, float) { return a > 0 ? 1.0f : a < 0 ? -1.0f : a; });
  CHECK_FALSE(std::signbit(optim::abs(-0.0f)));
}

TEST_CASE("min and max of numbers and vectors are NaN if one argument is", "[optim]") {
  const auto nan_or = [](float a, float b, float value) { return std::isnan(a) || std::isnan(b) ? none : value; };
  check([](const auto& a, const auto& b) { return optim::min(a, b); }, [&](float a, float b) { return nan_or(a, b, std::min(a, b)); });
  check([](const auto& a, const auto& b) { return optim::max(a, b); }, [&](float a, float b) { return nan_or(a, b, std::max(a, b)); });
  check([](const auto& a, const auto&) { return optim::max(optim::min(a, 2), -2.0f); },
        [](float a, float) { return std::isnan(a) ? a : std::max(std::min(a, 2.0f), -2.0f); });
}

TEST_CASE("select takes each lane by comparisons joined by &&, || and !", "[optim]") {
  check([](const auto& a, const auto& b) { return optim::select(a > b && b >= -1, a, 0.5f * b); },
        [](float a, float b) { return a > b && b >= -1 ? a : 0.5f * b; });
  check([](const auto& a, const auto& b) { return optim::select(!(a == b) || a < 0, 1, b); },
        [](float a, float b) { return a != b || a < 0 ? 1.0f : b; });
  check([](const auto& a, const auto& b) { return optim::select(a * b <= 0, 0, optim::select(a != 1, a, 7)); },
        [](float a, float b) { return a * b <= 0 ? 0.0f
                                      : a != 1   ? a
                                                 : 7.0f; });
}

TEST_CASE("update applies a user-written Lion as its formula says", "[optim]") {
  const double lr = GENERATE(0.01, 0.1), weight_decay = GENERATE(0.0, 0.1);
  std::array<double, sequence::count> average{};
  const auto expected = sequence::expected_after([&](double& w, double g, std::size_t i, std::int64_t, double factor) {
    const double mean = 0.9 * average[i] + 0.1 * g;
    w -= factor * lr * ((mean > 0 ? 1.0 : mean < 0 ? -1.0 : 0.0) + weight_decay * w);
    average[i] = 0.99 * average[i] + 0.01 * g;
  });
  const Lion rule{.lr = static_cast<float>(lr), .weight_decay = static_cast<float>(weight_decay)};
  CHECK(support::difference(sequence::parameters_after(rule), expected) < 3e-6);
}

}  // namespace functions_test
