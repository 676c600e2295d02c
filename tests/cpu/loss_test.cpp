#include <pdp/cpu/loss.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using pdp::Index;
using pdp::LossSums;
using pdp::Matrix;
using pdp::cpu::Cpu;

namespace {

// The operations take pointers to the scale and the sums. These wrappers take and return values.

template <class T>
LossSums cross_entropy_of(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, std::type_identity_t<T> scale,
                          Matrix<T> gradient) {
  const double of_rows = static_cast<double>(scale);
  LossSums sums;
  softmax_cross_entropy(cpu, logits, classes, &of_rows, gradient, &sums);
  return sums;
}
template <class T>
LossSums cross_entropy_of_parts(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                Matrix<const T> parts, std::type_identity_t<T> scale, Matrix<T> gradient) {
  const double of_rows = static_cast<double>(scale);
  LossSums sums;
  softmax_cross_entropy_of_parts(cpu, logits, classes, first, parts, &of_rows, gradient, &sums);
  return sums;
}
template <class T>
LossSums squared_error_of(const Cpu& cpu, Matrix<const T> output, Matrix<const T> target, std::type_identity_t<T> scale,
                          Matrix<T> gradient) {
  const double of_rows = static_cast<double>(scale);
  LossSums sums;
  squared_error(cpu, output, target, &of_rows, gradient, &sums);
  return sums;
}

struct Expected {
  LossSums sums;
  std::vector<double> gradient;
};

/// Computes cross-entropy in double, term by term.
template <class T>
Expected cross_entropy(const std::vector<T>& logits, const std::vector<std::int32_t>& classes, Index cols, double scale) {
  Expected expected;
  for (std::size_t r = 0; r < classes.size(); ++r) {
    const auto row = std::span{logits}.subspan(r * static_cast<std::size_t>(cols), static_cast<std::size_t>(cols));
    const double largest = static_cast<double>(*std::ranges::max_element(row));
    double total = 0;
    for (const T x : row) total += std::exp(static_cast<double>(x) - largest);
    const auto label = static_cast<std::size_t>(classes[r]);
    expected.sums.loss -= static_cast<double>(row[label]) - largest - std::log(total);
    expected.sums.correct += std::ranges::max_element(row) - row.begin() == classes[r] ? 1 : 0;
    for (std::size_t c = 0; c < row.size(); ++c)
      expected.gradient.push_back(scale * (std::exp(static_cast<double>(row[c]) - largest) / total - (c == label ? 1 : 0)));
  }
  return expected;
}

std::vector<std::int32_t> some_classes(Index rows, Index cols) {
  std::vector<std::int32_t> classes;
  for (Index r = 0; r < rows; ++r) classes.push_back(static_cast<std::int32_t>((r * 5 + 1) % cols));
  return classes;
}

template <class T>
constexpr double few_ulps = 20 * static_cast<double>(std::numeric_limits<T>::epsilon());

}  // namespace

TEMPLATE_TEST_CASE("softmax_cross_entropy matches a reference in double: loss, gradient and correct rows", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5, 64), cols = GENERATE(as<Index>{}, 1, 2, 7, 10, 33);
  const TestType spread = GENERATE(TestType{1}, TestType{30});
  auto logits = support::normal<TestType>(rows * cols, 1);
  for (TestType& x : logits) x *= spread;
  const auto classes = some_classes(rows, cols);
  const TestType scale = TestType{1} / 64;

  std::vector<TestType> gradient(logits.size() + 1, TestType{99});
  const LossSums sums = cross_entropy_of(cpu, Matrix<const TestType>{logits.data(), rows, cols}, std::span{classes}, scale,
                                         Matrix<TestType>{gradient.data(), rows, cols});
  CHECK(gradient.back() == 99);
  gradient.pop_back();

  const Expected expected = cross_entropy(logits, classes, cols, static_cast<double>(scale));
  CHECK(sums.loss == Approx(expected.sums.loss).epsilon(few_ulps<TestType>).margin(few_ulps<TestType> * static_cast<double>(rows)));
  CHECK(sums.correct == expected.sums.correct);
  CHECK(support::difference(gradient, expected.gradient) < few_ulps<TestType>);
}

TEMPLATE_TEST_CASE("softmax_cross_entropy computes a gradient that sums to zero in each row", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const auto logits = support::normal<TestType>(9 * 11, 4);
  const auto classes = some_classes(9, 11);
  std::vector<TestType> gradient(logits.size());
  cross_entropy_of(cpu, Matrix<const TestType>{logits.data(), 9, 11}, std::span{classes}, TestType{1},
                   Matrix<TestType>{gradient.data(), 9, 11});
  for (Index r = 0; r < 9; ++r) {
    double sum = 0;
    for (Index c = 0; c < 11; ++c) sum += static_cast<double>(gradient[static_cast<std::size_t>(r * 11 + c)]);
    CHECK(std::abs(sum) < few_ulps<TestType>);
  }
}

TEST_CASE("softmax_cross_entropy does not overflow for large logits", "[host]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const std::vector<float> logits{1e30f, 0, -1e30f, 500, 400, -500, -90'000, -90'000, -90'000};
  const std::vector<std::int32_t> classes{0, 1, 2};
  std::vector<float> gradient(9);
  const LossSums sums =
      cross_entropy_of(cpu, Matrix<const float>{logits.data(), 3, 3}, std::span{classes}, 1.0f, Matrix<float>{gradient.data(), 3, 3});
  CHECK(sums.loss == Approx(0 + 100 + std::log(3)));
  CHECK(sums.correct == 1);
  const std::vector<double> expected{0, 0, 0, 1, -1, 0, 1.0 / 3, 1.0 / 3, -2.0 / 3};
  CHECK(support::difference(gradient, expected) < 1e-6);
}

TEMPLATE_TEST_CASE("softmax_cross_entropy and squared_error compute the same sums without a gradient", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index cols = GENERATE(as<Index>{}, 1, 5, 16, 33);
  const auto logits = support::normal<TestType>(6 * cols, 5), target = support::normal<TestType>(6 * cols, 6);
  const auto classes = some_classes(6, cols);
  std::vector<TestType> gradient(logits.size());
  const Matrix<const TestType> x{logits.data(), 6, cols}, y{target.data(), 6, cols};
  const Matrix<TestType> to{gradient.data(), 6, cols};

  const LossSums with = cross_entropy_of(cpu, x, std::span{classes}, TestType{1}, to);
  const LossSums without = cross_entropy_of(cpu, x, std::span{classes}, TestType{1}, Matrix<TestType>{});
  CHECK(without.loss == Approx(with.loss).epsilon(few_ulps<TestType>));
  CHECK(without.correct == with.correct);

  CHECK(squared_error_of(cpu, x, y, TestType{1}, Matrix<TestType>{}).loss == squared_error_of(cpu, x, y, TestType{1}, to).loss);
}

TEST_CASE("softmax_cross_entropy takes the first of equal largest logits as the answer", "[host]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const std::vector<float> logits{1, 3, 3, 1, 3, 3};
  const std::vector<std::int32_t> classes{1, 2};
  CHECK(cross_entropy_of(cpu, Matrix<const float>{logits.data(), 2, 3}, std::span{classes}, 1.0f, Matrix<float>{}).correct == 1);
}

TEST_CASE("Cross-entropy does not round the small loss of a confident row to zero", "[host][tensor]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const std::vector<float> logits{-3, 13, -3, -3};  // a loss of three times e^-16
  const std::vector<std::int32_t> classes{1};
  const double loss = 3 * std::exp(-16.0);
  std::vector<float> gradient(4), parts(2 * 4);
  const Matrix<const float> x{logits.data(), 1, 4}, left{logits.data(), 1, 2}, right{logits.data() + 2, 1, 2};
  const Matrix<float> none{};
  CHECK(cross_entropy_of(cpu, x, std::span{classes}, 1.0f, Matrix<float>{gradient.data(), 1, 4}).loss == Approx(loss));
  CHECK(cross_entropy_of(cpu, x, std::span{classes}, 1.0f, none).loss == Approx(loss));
  softmax_part(cpu, left, std::span{classes}, 0, 4, Matrix<float>{parts.data(), 1, 4});
  softmax_part(cpu, right, std::span{classes}, 2, 4, Matrix<float>{parts.data() + 4, 1, 4});
  const Matrix<const float> both{parts.data(), 2, 4};
  CHECK(cross_entropy_of_parts(cpu, left, std::span{classes}, 0, both, 1.0f, none).loss == Approx(loss));
}

TEST_CASE("softmax_cross_entropy rejects a class out of range and reports row, class and outputs", "[host]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const auto message = [&](std::int32_t label, Index cols) {
    std::vector<float> logits(static_cast<std::size_t>(3 * cols));
    const std::vector<std::int32_t> classes{0, 0, label};
    return support::message_of<pdp::ConfigError>([&] {
      cross_entropy_of(cpu, Matrix<const float>{logits.data(), 3, cols}, std::span{classes}, 1.0f, Matrix<float>{});
    });
  };
  CHECK(!message(9, 10));
  CHECK_THAT(message(10, 10).value(), Contains("row 2") && Contains("class 10") && Contains("10 outputs") && Contains("classes 0 to 9"));
  CHECK_THAT(message(-1, 10).value(), Contains("row 2") && Contains("class -1"));
  CHECK_THAT(message(255, 2).value(), Contains("class 255") && Contains("2 outputs"));
}

TEST_CASE("Losses are NaN if an output is NaN", "[host]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  for (const std::size_t damaged : {0u, 1u, 2u}) {
    std::vector<float> logits{1, 2, 3};
    logits[damaged] = NAN;
    const std::vector<std::int32_t> classes{0};
    const std::vector<float> target{0, 0, 0};
    const Matrix<const float> x{logits.data(), 1, 3};
    CHECK(std::isnan(cross_entropy_of(cpu, x, std::span{classes}, 1.0f, Matrix<float>{}).loss));
    CHECK(std::isnan(squared_error_of(cpu, x, Matrix<const float>{target.data(), 1, 3}, 1.0f, Matrix<float>{}).loss));
  }
}

TEMPLATE_TEST_CASE("squared_error matches a reference in double: loss and gradient", "[host]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5), cols = GENERATE(as<Index>{}, 1, 7, 33);
  const auto output = support::normal<TestType>(rows * cols, 1), target = support::normal<TestType>(rows * cols, 2);
  const TestType scale = TestType{1} / 8;
  std::vector<TestType> gradient(output.size() + 1, TestType{99});
  const LossSums sums =
      squared_error_of(cpu, Matrix<const TestType>{output.data(), rows, cols}, Matrix<const TestType>{target.data(), rows, cols}, scale,
                       Matrix<TestType>{gradient.data(), rows, cols});
  CHECK(gradient.back() == 99);
  gradient.pop_back();

  double loss = 0;
  std::vector<double> expected;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double apart = static_cast<double>(output[i]) - static_cast<double>(target[i]);
    loss += apart * apart / static_cast<double>(cols);
    expected.push_back(2 * apart / static_cast<double>(cols) / 8);
  }
  CHECK(sums.loss == Approx(loss).epsilon(few_ulps<TestType>));
  CHECK(sums.correct == 0);
  CHECK(support::difference(gradient, expected) < few_ulps<TestType>);
}

TEMPLATE_TEST_CASE("softmax_cross_entropy_of_parts over divided columns matches the loss of all columns", "[host][tensor]", float, double) {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5, 64), own = GENERATE(as<Index>{}, 1, 3, 8), parts = GENERATE(as<Index>{}, 1, 2, 5);
  const TestType spread = GENERATE(TestType{0}, TestType{1}, TestType{30});  // 0: all logits are equal, and the first one counts
  const Index cols = own * parts;
  auto logits = support::normal<TestType>(rows * cols, 1);
  for (TestType& x : logits) x *= spread;
  const auto classes = some_classes(rows, cols);
  const TestType scale = TestType{1} / 64;
  const auto expected = cross_entropy(logits, classes, cols, static_cast<double>(scale));

  constexpr Index numbers = 4;
  std::vector<TestType> known(static_cast<std::size_t>(parts * rows * numbers));
  std::vector<std::vector<TestType>> columns;
  for (Index part = 0; part < parts; ++part) {
    auto& each = columns.emplace_back();
    for (Index r = 0; r < rows; ++r)
      each.insert(each.end(), logits.begin() + r * cols + part * own, logits.begin() + r * cols + (part + 1) * own);
    softmax_part(cpu, Matrix<const TestType>{each.data(), rows, own}, std::span<const std::int32_t>{classes}, part * own, cols,
                 Matrix<TestType>{known.data() + part * rows * numbers, rows, numbers});
  }
  for (Index part = 0; part < parts; ++part) {
    const Matrix<const TestType> each{columns[static_cast<std::size_t>(part)].data(), rows, own}, all{known.data(), parts * rows, numbers};
    std::vector<TestType> gradient(static_cast<std::size_t>(rows * own));
    const LossSums sums = cross_entropy_of_parts(cpu, each, std::span<const std::int32_t>{classes}, part * own, all, scale,
                                                 Matrix<TestType>{gradient.data(), rows, own});
    CHECK(sums.correct == expected.sums.correct);
    CHECK(sums.loss == Approx(expected.sums.loss).epsilon(few_ulps<TestType>).margin(few_ulps<TestType> * static_cast<double>(rows)));
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < own; ++c)
        CHECK(std::abs(static_cast<double>(gradient[static_cast<std::size_t>(r * own + c)]) -
                       expected.gradient[static_cast<std::size_t>(r * cols + part * own + c)]) <=
              few_ulps<TestType> * static_cast<double>(scale));
    CHECK(cross_entropy_of_parts(cpu, each, std::span<const std::int32_t>{classes}, part * own, all, scale, Matrix<TestType>{}).loss ==
          sums.loss);
  }
}

TEST_CASE("softmax_part rejects a class beyond the columns of all parts", "[host][tensor][bad input]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const std::vector<float> logits(6);
  std::vector<float> known(8);
  const std::vector<std::int32_t> classes{1, 6};
  CHECK_THROWS_WITH(softmax_part(cpu, Matrix<const float>{logits.data(), 2, 3}, std::span<const std::int32_t>{classes}, 3, 6,
                                 Matrix<float>{known.data(), 2, 4}),
                    Contains("row 1 of a batch is of class 6, but the model gives 6 outputs"));
}

TEST_CASE("softmax_cross_entropy_of_parts accepts a part whose logits are all minus infinity", "[host][tensor]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  constexpr float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> all{never, never, 1, 2}, low{never, never}, high{1, 2};
  const std::vector<std::int32_t> classes{2};
  std::vector<float> known(8), gradient(2), whole(4);
  softmax_part(cpu, Matrix<const float>{low.data(), 1, 2}, std::span<const std::int32_t>{classes}, 0, 4, Matrix<float>{known.data(), 1, 4});
  softmax_part(cpu, Matrix<const float>{high.data(), 1, 2}, std::span<const std::int32_t>{classes}, 2, 4,
               Matrix<float>{known.data() + 4, 1, 4});
  const double expected = cross_entropy_of(cpu, Matrix<const float>{all.data(), 1, 4}, std::span<const std::int32_t>{classes}, 1.0f,
                                           Matrix<float>{whole.data(), 1, 4})
                              .loss;
  CHECK(std::isfinite(expected));
  for (const Index first : {0, 2}) {
    const LossSums sums =
        cross_entropy_of_parts(cpu, Matrix<const float>{all.data() + first, 1, 2}, std::span<const std::int32_t>{classes}, first,
                               Matrix<const float>{known.data(), 2, 4}, 1.0f, Matrix<float>{gradient.data(), 1, 2});
    CHECK(sums.loss == Approx(expected));
    for (std::size_t c = 0; c < 2; ++c) CHECK(gradient[c] == Approx(whole[static_cast<std::size_t>(first) + c]).margin(1e-7));
  }
}

TEST_CASE("Losses add to the sums that they are given", "[host]") {
  const std::vector<float> logits{1, 2, 3}, targets{1, 2, 5};
  const std::vector<std::int32_t> classes{2};
  const Matrix<const float> x{logits.data(), 1, 3}, y{targets.data(), 1, 3};
  const Matrix<float> none{};
  const double scale = 1;
  LossSums sums{10, 20};
  softmax_cross_entropy(Cpu{}, x, std::span<const std::int32_t>{classes}, &scale, none, &sums);
  CHECK(sums.loss == Approx(10 + cross_entropy_of(Cpu{}, x, classes, 1, none).loss));
  CHECK(sums.correct == 21);
  std::vector<float> known(4);
  softmax_part(Cpu{}, x, std::span<const std::int32_t>{classes}, 0, 3, Matrix<float>{known.data(), 1, 4});
  sums = {10, 20};
  softmax_cross_entropy_of_parts(Cpu{}, x, std::span<const std::int32_t>{classes}, 0, Matrix<const float>{known.data(), 1, 4}, &scale, none,
                                 &sums);
  CHECK(sums.loss == Approx(10 + cross_entropy_of(Cpu{}, x, classes, 1, none).loss));
  CHECK(sums.correct == 21);
  sums = {10, 20};
  squared_error(Cpu{}, x, y, &scale, none, &sums);
  CHECK(sums.loss == Approx(10 + 4.0 / 3));
  CHECK(sums.correct == 20);
}
