#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/metric/classification.hpp>
#include <pdp/metric/regression.hpp>
#include <pdp/metric/states.hpp>
#include <pdp/testing/values.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"

namespace metric_test {

namespace metric = pdp::metric;
using pdp::Index, pdp::Matrix;

namespace {

/// Outputs and targets of some rows.
template <class Target>
struct Rows {
  Index width;
  std::vector<float> outputs;
  std::vector<Target> targets;
  Index target_width;

  [[nodiscard]] Index count() const { return static_cast<Index>(outputs.size()) / width; }
};
Rows<std::int32_t> classified(Index rows, Index classes) {
  Rows<std::int32_t> made{classes, pdp::testing::normal(static_cast<std::size_t>(rows * classes), 3), {}, 1};
  for (Index r = 0; r < rows; ++r) made.targets.push_back(static_cast<std::int32_t>((r * r + 1) % classes));
  return made;
}
Rows<float> measured(Index rows, Index width, float shift) {
  Rows<float> made{width, pdp::testing::normal(static_cast<std::size_t>(rows * width), 5), {}, width};
  made.targets = pdp::testing::normal(static_cast<std::size_t>(rows * width), 6);
  for (std::size_t i = 0; i < made.targets.size(); ++i) {
    made.targets[i] += shift;
    made.outputs[i] = made.targets[i] + 0.3f * made.outputs[i];
  }
  return made;
}

/// Returns the results if ranks count these numbers of rows, in chunks of three.
template <class Target>
std::vector<metric::Result> results(const std::vector<metric::Any>& metrics, const Rows<Target>& rows, const std::vector<Index>& shares) {
  std::vector<double> all;
  Index first = 0;
  for (const Index share : shares) {
    metric::States states{metrics, rows.width};
    for (Index done = 0; done < share; done += 3) {
      const Index count = std::min<Index>(3, share - done), at = first + done;
      states.add(Matrix<const float>{rows.outputs.data() + at * rows.width, count, rows.width},
                 std::span{rows.targets}.subspan(static_cast<std::size_t>(at * rows.target_width),
                                                 static_cast<std::size_t>(count * rows.target_width)));
    }
    first += share;
    all.insert(all.end(), states.own().begin(), states.own().end());
  }
  metric::States merged{metrics, rows.width};
  merged.set_all(all);
  return merged.results();
}

}  // namespace

TEST_CASE("TopK and Accuracy count the rows that a sort of the outputs finds right", "[metric]") {
  const auto rows = classified(101, 7);
  for (const int k : {1, 2, 5, 7}) {
    double right = 0;
    for (Index r = 0; r < rows.count(); ++r) {
      std::vector<Index> order(7);
      for (Index c = 0; c < 7; ++c) order[static_cast<std::size_t>(c)] = c;
      std::ranges::sort(order, [&](Index a, Index b) {
        return rows.outputs[static_cast<std::size_t>(r * 7 + a)] > rows.outputs[static_cast<std::size_t>(r * 7 + b)];
      });
      if (std::find(order.begin(), order.begin() + k, rows.targets[static_cast<std::size_t>(r)]) != order.begin() + k) ++right;
    }
    CHECK(results({metric::TopK{k}}, rows, {101}).front().value() == right / 101);
    if (k == 1) CHECK(results({metric::Accuracy{}}, rows, {101}).front().value() == right / 101);
  }
}

TEST_CASE("ConfusionMatrix has the rows of each class in its row and the right ones on its diagonal", "[metric]") {
  const auto rows = classified(53, 4);
  const auto found = results({metric::ConfusionMatrix{}, metric::Accuracy{}}, rows, {53});
  const std::vector<double>& cells = found[0].values;
  REQUIRE(cells.size() == 16);
  double diagonal = 0;
  for (std::size_t c = 0; c < 4; ++c) {
    diagonal += cells[c * 5];
    const double of_class = cells[c * 4] + cells[c * 4 + 1] + cells[c * 4 + 2] + cells[c * 4 + 3];
    CHECK(of_class == static_cast<double>(std::ranges::count(rows.targets, static_cast<std::int32_t>(c))));
  }
  CHECK(diagonal / 53 == found[1].value());
  CHECK_THROWS_WITH(found[0].value(), Contains("the metric confusion matrix has 16 numbers"));
}

TEST_CASE("Metrics of classes count a row with NaN as wrong or leave it out", "[metric]") {
  const float nan = pdp::not_a_number<float>();
  const Rows<std::int32_t> rows{2, {nan, 1, 1, nan, 1, 0}, {0, 0, 0}, 1};
  const auto found = results({metric::TopK{1}, metric::Accuracy{}, metric::ConfusionMatrix{}}, rows, {3});
  CHECK(found[0].value() == 2.0 / 3);
  CHECK(found[1].value() == 1.0 / 3);
  CHECK(found[2].values == std::vector<double>{1, 0, 0, 0});
}

TEST_CASE("Metrics of numbers equal their definitions, also for targets far from zero", "[metric]") {
  const float shift = GENERATE(0.0f, 1000.0f);
  const auto rows = measured(37, 3, shift);
  double absolute = 0, square = 0, determination = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    double mean = 0, deviations = 0, errors = 0;
    for (std::size_t i = c; i < rows.targets.size(); i += 3) mean += double{rows.targets[i]} / 37;
    for (std::size_t i = c; i < rows.targets.size(); i += 3) {
      const double error = double{rows.outputs[i]} - double{rows.targets[i]}, deviation = double{rows.targets[i]} - mean;
      absolute += std::abs(error);
      square += error * error;
      errors += error * error;
      deviations += deviation * deviation;
    }
    determination += (1 - errors / deviations) / 3;
  }
  const auto found = results({metric::MeanAbsoluteError{}, metric::RootMeanSquaredError{}, metric::RSquared{}}, rows, {37});
  CHECK_THAT(found[0].value(), WithinRel(absolute / 111, 1e-12));
  CHECK_THAT(found[1].value(), WithinRel(std::sqrt(square / 111), 1e-12));
  CHECK_THAT(found[2].value(), WithinRel(determination, 1e-9));
  CHECK(found[2].higher_is_better);
  CHECK_FALSE(found[0].higher_is_better);
}

TEST_CASE("RSquared is 1 or 0 for equal targets, and NaN without rows", "[metric]") {
  const Rows<float> right{1, {2, 2, 2}, {2, 2, 2}, 1}, wrong{1, {2, 3, 2}, {2, 2, 2}, 1};
  CHECK(results({metric::RSquared{}}, right, {3}).front().value() == 1);
  CHECK(results({metric::RSquared{}}, wrong, {3}).front().value() == 0);
  CHECK(pdp::is_nan(results({metric::RSquared{}}, right, {0}).front().value()));
  CHECK(pdp::is_nan(results({metric::MeanAbsoluteError{}}, right, {0}).front().value()));
}

TEST_CASE("Metrics do not depend on how the rows are divided over ranks", "[metric]") {
  const std::vector<Index> shares = GENERATE(as<std::vector<Index>>{}, std::vector<Index>{1, 40}, std::vector<Index>{14, 0, 13, 14},
                                             std::vector<Index>{0, 0, 41}, std::vector<Index>{5, 6, 7, 8, 7, 8});
  const std::vector<metric::Any> of_classes{metric::TopK{2}, metric::Accuracy{}, metric::ConfusionMatrix{}};
  const auto rows = classified(41, 5);
  const auto whole = results(of_classes, rows, {41}), parts = results(of_classes, rows, shares);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(whole[i].values == parts[i].values);

  const std::vector<metric::Any> of_numbers{metric::MeanAbsoluteError{}, metric::RootMeanSquaredError{}, metric::RSquared{}};
  const auto numbers = measured(41, 2, 300);
  const auto all = results(of_numbers, numbers, {41}), divided = results(of_numbers, numbers, shares);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK_THAT(divided[i].value(), WithinRel(all[i].value(), 1e-10));
}

TEST_CASE("Any refuses targets that its metric does not take", "[metric]") {
  const std::vector<float> numbers{1};
  const std::vector<std::int32_t> classes{0};
  std::array<double, 4> state{};
  const Matrix<const float> outputs{numbers.data(), 1, 1};
  CHECK_THROWS_WITH(metric::Any{metric::Accuracy{}}.add(outputs, std::span<const float>{numbers}, state),
                    Contains("the metric accuracy takes targets that are classes, but those of the dataset are vectors of numbers"));
  CHECK_THROWS_WITH(metric::Any{metric::RSquared{}}.add(outputs, std::span<const std::int32_t>{classes}, state),
                    Contains("the metric R2 takes targets that are vectors of numbers"));
  CHECK_THROWS_WITH(metric::Any{metric::TopK{0}}.add(outputs, std::span<const std::int32_t>{classes}, state),
                    Contains("k = 0; expected 1"));
}

}  // namespace metric_test
