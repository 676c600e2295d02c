#include <pdp/train/column_statistics.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/normalised.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/testing/ranks.hpp>

#include "catch.hpp"

namespace column_statistics_test {

namespace data = pdp::data;
using pdp::Index;
using pdp::Shape;

namespace {

/// Returns a value of a dataset of waves with different offsets.
float wave(Index sample, Index column, Index columns) {
  return static_cast<float>(100 * static_cast<double>(column) + std::sin(static_cast<double>(sample * columns + column) * 0.37));
}

/// Returns `samples` waves, from number `first` on.
data::InMemory<float> waves(Index samples, Index columns, Index first = 0) {
  std::vector<float> x;
  for (Index sample = first; sample < first + samples; ++sample)
    for (Index column = 0; column < columns; ++column) x.push_back(wave(sample, column, columns));
  return {Shape{columns}, std::move(x), std::vector<float>(static_cast<std::size_t>(samples))};
}

}  // namespace

TEST_CASE("column_statistics returns the same bits on all ranks, for any number of ranks", "[train]") {
  const auto samples = GENERATE(as<Index>{}, 1, 63, 64, 1000);
  const auto set = waves(samples, 3);
  pdp::comm::Self alone;
  const data::ColumnStatistics expected = pdp::column_statistics(alone, set);
  CHECK(expected.samples == samples);
  CHECK((expected.mean.size() == 3 && expected.deviation.size() == 3));
  double mean = 0;
  for (Index i = 0; i < samples; ++i) mean += static_cast<double>(wave(i, 1, 3));
  CHECK_THAT(expected.mean[1], WithinRel(mean / static_cast<double>(samples), 1e-12));
  for (const int size : {1, 2, 3, 5, 70})
    for (const auto& statistics :
         pdp::testing::ranks<pdp::comm::Thread>(size, [&](auto& world) { return pdp::column_statistics(world, set); }))
      CHECK(statistics == expected);
}

TEST_CASE("column_statistics throws on every rank when one finds NaN, and names sample and column", "[train]") {
  std::vector<float> x(200, 1);
  x[2 * 77 + 1] = std::numeric_limits<float>::quiet_NaN();
  const data::InMemory set{Shape{2}, x, std::vector<float>(100)};
  const auto errors =
      pdp::testing::errors<pdp::comm::Thread>(3, [&](auto& world) { static_cast<void>(pdp::column_statistics(world, set)); });
  for (const auto& error : errors) {
    CHECK(error.is<pdp::FileError>());
    CHECK_THAT(error.what(), Contains("rank 2: expected finite values in the dataset, found NaN in sample 77, column 1"));
  }
}

TEST_CASE("column_statistics throws on every rank when a rank has another dataset, or an empty one", "[train]") {
  const auto errors = pdp::testing::errors<pdp::comm::Thread>(
      2, [&](auto& world) { static_cast<void>(pdp::column_statistics(world, waves(10 + world.rank(), 2))); });
  for (const auto& error : errors) CHECK_THAT(error.what(), Contains("rank 1 was given samples in the dataset = 11, but rank 0"));
  pdp::comm::Self alone;
  CHECK_THROWS_AS(pdp::column_statistics(alone, data::InMemory{Shape{2}, std::vector<float>{}, std::vector<float>{}}), pdp::ConfigError);
}

TEST_CASE("column_statistics of PerRank parts are those of the whole dataset, and the same bits on all ranks", "[train][per rank]") {
  const auto sizes = GENERATE(as<std::vector<Index>>{}, std::vector<Index>{100}, std::vector<Index>{60, 40}, std::vector<Index>{0, 99, 1},
                              std::vector<Index>{7, 0, 30, 63});
  pdp::comm::Self alone;
  const data::ColumnStatistics expected = pdp::column_statistics(alone, waves(100, 3));
  const auto part_of = [&](int share) {
    Index first = 0;
    for (int before = 0; before < share; ++before) first += sizes[static_cast<std::size_t>(before)];
    return data::PerRank{waves(sizes[static_cast<std::size_t>(share)], 3, first)};
  };
  const auto shares = static_cast<int>(sizes.size());
  const auto found =
      pdp::testing::ranks<pdp::comm::Thread>(shares, [&](auto& world) { return pdp::column_statistics(world, part_of(world.rank())); });
  for (const auto& statistics : found) {
    CHECK(statistics == found.front());
    CHECK(statistics.samples == 100);
    for (std::size_t column = 0; column < 3; ++column) {
      CHECK_THAT(statistics.mean[column], WithinRel(expected.mean[column], 1e-13));
      CHECK_THAT(statistics.deviation[column], WithinRel(expected.deviation[column], 1e-12));
    }
  }
  if (shares == 1) CHECK(found.front() == expected);
  // Two ranks have each part.
  for (const auto& statistics : pdp::testing::ranks<pdp::comm::Thread>(2 * shares, [&](auto& world) {
         const int share = world.rank() % shares;
         return pdp::column_statistics(world, part_of(share), {}, data::Shard{share, shares});
       }))
    CHECK(statistics == found.front());
}

TEST_CASE("column_statistics of PerRank throws on every rank when a part does not fit or has NaN", "[train][per rank]") {
  const auto check = [](const auto& part_of, int shares, const std::string& expected) {
    for (const auto& error : pdp::testing::errors<pdp::comm::Thread>(2, [&](auto& world) {
           const data::Shard share{world.rank() % shares, shares};
           static_cast<void>(pdp::column_statistics(world, data::PerRank{part_of(world.rank())}, {}, share));
         }))
      CHECK_THAT(error.what(), Contains(expected));
  };
  check([](int rank) { return waves(4, 2 + rank); }, 2, "values in a sample = 3, but rank 0");
  check([](int) { return waves(0, 2); }, 2, "the data::PerRank of every rank is empty");
  check([](int rank) { return waves(4, 2, rank); }, 1, "other samples than rank 0");
  const auto broken = [](int rank) {
    return data::InMemory{Shape{1}, std::vector<float>{1, rank == 1 ? std::numeric_limits<float>::infinity() : 2}, std::vector<float>(2)};
  };
  check(broken, 2, "rank 1: expected finite values in the dataset, found infinity in sample 1, column 0");
}

TEST_CASE("Statistics return from a manifest to the bit", "[train]") {
  const data::ColumnStatistics statistics{12, {0.1, -1e-300, 1.0 / 3}, {0, 5e-324, 1.7976931348623157e308}};
  pdp::checkpoint::Manifest manifest;
  pdp::store_statistics(manifest.values, "inputs", statistics);
  manifest.values["note"] = "other";
  const auto decoded = pdp::checkpoint::decode(pdp::checkpoint::encode(manifest), "manifest.json");
  CHECK(pdp::stored_statistics(decoded.values, "inputs") == statistics);
}

TEST_CASE("stored_statistics rejects values that are missing or damaged", "[train]") {
  pdp::checkpoint::Values values;
  const auto refused = [&] {
    try {
      static_cast<void>(pdp::stored_statistics(values, "inputs"));
    } catch (const pdp::FileError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  CHECK_THAT(refused(), Contains("expected the statistics 'inputs'") && Contains("found none of this name"));
  pdp::store_statistics(values, "inputs", {1, {1, 2}, {3, 4}});
  CHECK(refused().empty());
  for (const char* damaged : {"", "1", "1 2 3", "1  2", "1 2 ", "1 x", "1 nan", "1,5 2"}) {
    values["inputs.mean"] = damaged;
    INFO(damaged);
    CHECK_THAT(refused(), Contains("found damaged ones"));
  }
  values["inputs.mean"] = "1 2";
  values["inputs.samples"] = 1.0;
  CHECK_THAT(refused(), Contains("found damaged ones"));
}

}  // namespace column_statistics_test
