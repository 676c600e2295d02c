#include <pdp/cpu/simd/elementary.hpp>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using pdp::Index;
using pdp::cpu::Lanes;
using pdp::cpu::Simd;

namespace {

/// Calls check.operator()<S>() for each register type of this processor.
template <class Check>
void on_each(Check check) {
  for (const Simd registers : support::registers()) pdp::cpu::with_simd(registers, check);
}

/// Returns the largest error of an operation on lanes, in units in the last place, over numbers of both signs and many magnitudes from
/// `first` to `last`.
template <Simd S, class Operation, class Exact>
double worst(float first, float last, Operation operation, Exact exact) {
  using V = Lanes<float, S>;
  std::vector<float> numbers;
  for (int exponent = -126; exponent <= 6; ++exponent)
    for (float mantissa = 1; mantissa < 2; mantissa += 0.013f)
      for (const float sign : {-1.0f, 1.0f})
        if (const float number = sign * std::ldexp(mantissa, exponent); first <= number && number <= last) numbers.push_back(number);
  while (numbers.size() % static_cast<std::size_t>(V::count) != 0) numbers.push_back(0);
  double largest = 0;
  for (std::size_t i = 0; i < numbers.size(); i += static_cast<std::size_t>(V::count)) {
    std::vector<float> found(static_cast<std::size_t>(V::count));
    operation(V::load(&numbers[i])).store(found.data());
    for (std::size_t lane = 0; lane < found.size(); ++lane) {
      const double wanted = exact(static_cast<double>(numbers[i + lane]));
      const auto nearest = static_cast<float>(wanted);
      const double unit = static_cast<double>(std::nextafter(std::abs(nearest), HUGE_VALF)) - std::abs(static_cast<double>(nearest));
      const double each = std::abs(static_cast<double>(found[lane]) - wanted) / unit;
      if (std::isnan(each)) return each;
      largest = std::max(largest, each);
    }
  }
  return largest;
}

}  // namespace

TEMPLATE_TEST_CASE("Lanes operators compute each lane on its own, for each register type", "[host]", float, double) {
  on_each([]<Simd S>() {
    using T = TestType;
    using V = Lanes<T, S>;
    const auto lanes_of = [](const std::vector<T>& numbers) {
      return V::generate([&](int lane) { return numbers[static_cast<std::size_t>(lane) % numbers.size()]; });
    };
    // Even and odd lanes differ in sign and size. The smallest register has two lanes of double.
    for (const auto& [x, y] : {std::pair<T, T>{1, 4}, {-2, 5}, {3, -6}, {16, 2}}) {
      const V a = lanes_of({x, T{3}}), b = lanes_of({y, T{-7}});
      const auto is = [&](const V& lanes, T first, T second) {
        for (int lane = 0; lane < V::count; ++lane)
          if (lanes.vector[lane] != (lane % 2 == 0 ? first : second)) return false;
        return true;
      };
      CHECK(is(a + b, x + y, -4));
      CHECK(is(a - b, x - y, 10));
      CHECK(is(a * b, x * y, -21));
      CHECK(is(a / b, x / y, T{3} / -7));
      CHECK(is(-a, -x, -3));
      CHECK(is(2 + a, 2 + x, 5));
      CHECK(is(a + 2.0, x + 2, 5));
      CHECK(is(2.0f - a, 2 - x, -1));
      CHECK(is(a - 2, x - 2, 1));
      CHECK(is(2 * a, 2 * x, 6));
      CHECK(is(a * 2.0f, 2 * x, 6));
      CHECK(is(6 / b, 6 / y, T{6} / -7));
      CHECK(is(b / 2, y / 2, T{-7} / 2));
      CHECK(is(sqrt(a * a), std::abs(x), 3));
      CHECK(is(V::all(7), 7, 7));
      CHECK(is(where_greater(a, b, V::all(1), V::all(2)), x > y ? 1 : 2, 1));
      CHECK(a.sum() == (x + 3) * V::count / 2);
      CHECK(a.largest() == std::max(x, T{3}));
    }
    constexpr T none = std::numeric_limits<T>::quiet_NaN();
    for (const auto& [x, y] : {std::pair<T, T>{none, 1}, {1, none}})
      CHECK(where_greater(V::all(x), V::all(y), V::all(1), V::all(2)).vector[0] == 2);
  });
}

TEMPLATE_TEST_CASE("Comparisons of Lanes select as those of numbers do, also for NaN, infinity and zeros", "[host]", float, double) {
  on_each([]<Simd S>() {
    using T = TestType;
    using V = Lanes<T, S>;
    constexpr T infinite = std::numeric_limits<T>::infinity(), none = std::numeric_limits<T>::quiet_NaN();
    for (const T x : {T{0}, -T{0}, T{1}, T{-2}, infinite, -infinite, none})
      for (const T y : {T{0}, -T{0}, T{1}, T{-2}, infinite, -infinite, none}) {
        const V a = V::all(x), b = V::all(y);
        const auto is = [](const pdp::cpu::Mask<T, S>& mask, bool expected) {
          const V lanes = mask.select(V::all(1), 2);
          for (int lane = 0; lane < V::count; ++lane)
            if (lanes.vector[lane] != (expected ? 1 : 2)) return false;
          return true;
        };
        INFO(x << " and " << y);
        CHECK((is(a > b, x > y) && is(a > y, x > y) && is(x > b, x > y)));
        CHECK((is(a >= b, x >= y) && is(a >= y, x >= y) && is(x >= b, x >= y)));
        CHECK((is(a < b, x < y) && is(a < y, x < y) && is(x < b, x < y)));
        CHECK((is(a <= b, x <= y) && is(a <= y, x <= y) && is(x <= b, x <= y)));
        CHECK((is(a == b, x == y) && is(a == y, x == y) && is(x == b, x == y)));
        CHECK((is(a != b, x != y) && is(a != y, x != y) && is(x != b, x != y)));
        CHECK(is(a > 0 && b > 0, x > 0 && y > 0));
        CHECK(is(a > 0 || b > 0, x > 0 || y > 0));
        CHECK(is(!(a > b), !(x > y)));
      }
    // Lanes that differ.
    const V numbers = V::generate([](int lane) { return static_cast<T>(lane); });
    const V selected = (numbers >= 1).select(numbers, -numbers - 5);
    CHECK(selected.vector[0] == -5);
    CHECK(selected.vector[V::count - 1] == V::count - 1);
  });
}

TEMPLATE_TEST_CASE("Lanes::load and Lanes::store of some lanes leave all other memory alone", "[host]", float, double) {
  on_each([]<Simd S>() {
    using V = Lanes<TestType, S>;
    for (std::size_t offset = 0; offset < 3; ++offset)
      for (Index some = 0; some <= V::count; ++some) {
        std::vector<TestType> from(offset + static_cast<std::size_t>(some)), to(static_cast<std::size_t>(V::count) + 4, 9);
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<TestType>(i + 1);
        const V lanes = V::load(from.data() + offset, some);
        for (int lane = 0; lane < V::count; ++lane)
          CHECK(lanes.vector[lane] == (lane < some ? static_cast<TestType>(offset + static_cast<std::size_t>(lane) + 1) : 0));
        lanes.store(to.data() + offset, some);
        for (std::size_t i = 0; i < to.size(); ++i) CHECK(to[i] == (i >= offset && i < from.size() ? from[i] : 9));
      }
  });
}

TEST_CASE("exp and tanh of Lanes are within 2 units in the last place, saturate and propagate NaN", "[host]") {
  on_each([]<Simd S>() {
    using V = Lanes<float, S>;
    CHECK(worst<S>(
              -87.3f, 88.3f, [](const V& x) { return exp(x); }, [](double x) { return std::exp(x); }) < 2);
    CHECK(worst<S>(
              -126, 126, [](const V& x) { return tanh(x); }, [](double x) { return std::tanh(x); }) < 2);
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(exp(V{}).vector[0] == 1);
    for (const float low : {-88.0f, -1e30f, -infinity}) CHECK(exp(V::all(low)).vector[0] == 0);
    for (const float high : {90.0f, 1e30f, infinity}) {
      CHECK(exp(V::all(high)).vector[0] > 2.3e38f);
      CHECK(std::isfinite(exp(V::all(high)).vector[0]));
    }
    CHECK(tanh(V::all(infinity)).vector[0] == 1);
    CHECK(tanh(V::all(-infinity)).vector[0] == -1);
    CHECK(std::isnan(exp(V::all(std::numeric_limits<float>::quiet_NaN())).vector[0]));
    CHECK(std::isnan(tanh(V::all(std::numeric_limits<float>::quiet_NaN())).vector[0]));
  });
}

TEST_CASE("log and log1p of Lanes are within 3 units in the last place, and propagate NaN and infinity", "[host]") {
  on_each([]<Simd S>() {
    using V = Lanes<float, S>;
    const auto of_log = [](float first, float last) {
      return worst<S>(
          first, last, [](const V& x) { return log((x > 0).select(x, 1)); }, [](double x) { return x > 0 ? std::log(x) : 0; });
    };
    const auto of_log1p = [](float first, float last) {
      return worst<S>(
          first, last, [](const V& x) { return log1p(x); }, [](double x) { return std::log1p(x); });
    };
    CHECK(of_log(std::numeric_limits<float>::min(), 126) < 2);
    CHECK(of_log(0.5f, 2) < 2);
    CHECK(of_log1p(0, 126) < 3);
    CHECK(of_log1p(-0.999f, 0) < 3);
    constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
    const auto first = [](const V& lanes) { return lanes.vector[0]; };
    CHECK(first(log(V::all(1))) == 0);
    CHECK(first(log(V::all(std::numeric_limits<float>::max()))) == Approx(88.722839));
    CHECK(first(log(V::all(0x1p-140f))) == Approx(-140 * std::log(2.0)));
    CHECK((first(log(V{})) == -infinity && first(log(V::all(-0.0f))) == -infinity && first(log1p(V::all(-1))) == -infinity));
    CHECK((first(log(V::all(infinity))) == infinity && first(log1p(V::all(infinity))) == infinity));
    for (const float wrong : {-1.0f, -infinity, none})
      CHECK((std::isnan(first(log(V::all(wrong)))) && std::isnan(first(log1p(V::all(2 * wrong))))));
    CHECK(first(log1p(V::all(1e-30f))) == 1e-30f);
    CHECK(first(log1p(V::all(-1e-30f))) == -1e-30f);
  });
}

TEST_CASE("exp, log, log1p, tanh and erf of Lanes of double equal those of the C library", "[host]") {
  on_each([]<Simd S>() {
    using V = Lanes<double, S>;
    for (const double x : {1e-300, 1e-9, 0.3, 0.5, 1.0, 7.0, 700.0}) {
      const V all = V::all(x);
      const int last = V::count - 1;
      CHECK((exp(all).vector[last] == std::exp(x) && tanh(all).vector[last] == std::tanh(x) && erf(all).vector[last] == std::erf(x)));
      CHECK((log(all).vector[last] == std::log(x) && log1p(all).vector[last] == std::log1p(x)));
    }
  });
}

TEST_CASE("FlushDenormals flushes denormals to zero during its lifetime only", "[host]") {
  const auto half_of_least = [] {
    volatile float least = std::numeric_limits<float>::min();
    least = least / 2;
    return static_cast<float>(least);
  };
  CHECK(half_of_least() > 0);
  {
    const pdp::cpu::FlushDenormals guard;
    CHECK_FALSE(half_of_least() > 0);
  }
  CHECK(half_of_least() > 0);
}
