#include <pdp/data/normalised.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <pdp/data/column_statistics.hpp>
#include <pdp/data/in_memory.hpp>

#include "catch.hpp"
#include "data/files.hpp"

namespace normalised_test {

namespace data = pdp::data;
using pdp::Index;
using pdp::Shape;

namespace {

/// Returns rows with columns of different offsets and scales. The last column is constant.
std::vector<float> random_rows(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 random{seed};
  std::normal_distribution<float> normal;
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = i % columns;
    const auto scale = static_cast<float>(std::pow(10.0, static_cast<double>(column) - 2));
    values[i] = column + 1 == columns ? 0.1f : 1000 * scale + scale * normal(random);
  }
  return values;
}

/// Computes a mean and deviation in two passes.
std::pair<double, double> two_passes(const std::vector<float>& values, std::size_t column, std::size_t columns) {
  long double mean = 0, squares = 0;
  const auto rows = static_cast<long double>(values.size() / columns);
  for (std::size_t i = column; i < values.size(); i += columns) mean += static_cast<long double>(values[i]) / rows;
  for (std::size_t i = column; i < values.size(); i += columns) {
    const long double apart = static_cast<long double>(values[i]) - mean;
    squares += apart * apart;
  }
  return {static_cast<double>(mean), static_cast<double>(std::sqrt(squares / rows))};
}

}  // namespace

TEST_CASE("ColumnMoments agree with two passes when rows are added in any pieces and merged", "[data][normalised]") {
  const auto rows = GENERATE(as<std::size_t>{}, 1, 2, 7, 1000);
  const std::size_t columns = 5;
  const auto values = random_rows(rows, columns, 3);
  std::mt19937 random{7};
  data::ColumnMoments merged{Index{columns}};
  for (std::size_t begin = 0; begin < rows;) {
    const std::size_t end = std::min(rows, begin + random() % 9);
    data::ColumnMoments piece{Index{columns}};
    piece.add(std::span{values}.subspan(begin * columns, (end - begin) * columns));
    merged.merge(piece);
    begin = end;
  }
  const data::ColumnStatistics statistics = merged.statistics();
  CHECK(statistics.samples == static_cast<Index>(rows));
  for (std::size_t column = 0; column < columns; ++column) {
    const auto [mean, deviation] = two_passes(values, column, columns);
    CHECK_THAT(statistics.mean[column], WithinRel(mean, 1e-12));
    CHECK_THAT(statistics.deviation[column], WithinRel(deviation, 1e-9) || WithinAbs(deviation, 1e-12));
  }
  CHECK(statistics.deviation.back() == 0);
  CHECK(statistics.mean.back() == double{0.1f});
}

TEST_CASE("normalised gives columns of mean 0 and deviation 1, and leaves a constant column at 0", "[data][normalised]") {
  const std::size_t rows = 501, columns = 4;
  const auto values = random_rows(rows, columns, 11);
  data::ColumnMoments moments{Index{columns}};
  moments.add(values);
  const data::InMemory set{Shape{2, 2}, values, std::vector<std::int32_t>(rows, 1)};
  const auto normal = data::normalised(set, moments.statistics());
  static_assert(data::Dataset<std::remove_const_t<decltype(normal)>>);
  CHECK((normal.size() == set.size() && normal.sample_shape() == Shape{2, 2} && normal.target_shape() == Shape{1}));

  std::vector<Index> all(rows);
  std::iota(all.begin(), all.end(), Index{0});
  std::vector<float> x(values.size());
  std::vector<std::int32_t> y(rows);
  normal.gather(all, x, y);
  CHECK(y.back() == 1);
  for (std::size_t column = 0; column + 1 < columns; ++column) {
    const auto [mean, deviation] = two_passes(x, column, columns);
    CHECK_THAT(mean, WithinAbs(0, 1e-4));
    CHECK_THAT(deviation, WithinAbs(1, 1e-4));
  }
  for (std::size_t i = columns - 1; i < x.size(); i += columns) CHECK(x[i] == 0);

  std::vector<float> one(values.begin(), values.begin() + columns);
  data::Normalisation{moments.statistics()}.apply(one);
  CHECK(std::equal(one.begin(), one.end(), x.begin()));
}

TEST_CASE("normalised rejects statistics that do not fit the samples or are not finite", "[data][normalised]") {
  const data::InMemory set{Shape{2}, std::vector<float>(4), std::vector<float>(2)};
  const auto message = [&](const data::ColumnStatistics& statistics) {
    return files::message_of<pdp::ConfigError>([&] { static_cast<void>(data::normalised(set, statistics)); }).value();
  };
  CHECK_THAT(files::message_of<pdp::ShapeError>([&] {
               static_cast<void>(data::normalised(set, {1, {0, 0, 0}, {1, 1, 1}}));
             }).value(),
             Contains("expected statistics of the 2 values of a sample, found those of 3"));
  CHECK_THAT(message({}), Contains("found 0 means and 0 deviations"));
  CHECK_THAT(message({1, {0, 0}, {1}}), Contains("found 2 means and 1 deviations"));
  CHECK_THAT(message({1, {0, 0}, {1, -1}}), Contains("in column 1, found 0 and -1"));
  CHECK_THAT(message({1, {std::numeric_limits<double>::infinity(), 0}, {1, 1}}), Contains("in column 0, found inf"));
  std::vector<float> rows(3);
  CHECK_THAT(files::message_of<pdp::ShapeError>([&] {
               data::Normalisation{{1, {0, 0}, {1, 1}}}.apply(rows);
             }).value(),
             Contains("expected rows of 2 values to normalise, found 3 values"));
}

}  // namespace normalised_test
