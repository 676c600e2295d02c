#include <pdp/data/in_memory.hpp>
#include <pdp/data/loader.hpp>
#include <pdp/data/part_batches.hpp>
#include <pdp/data/part_sampler.hpp>
#include <pdp/data/per_rank.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace part_batches_test {

namespace data = pdp::data;
using data::PartBatches, data::PartSampler, data::Rows, data::Shard;
using pdp::Index;

namespace {

const std::vector<std::vector<Index>> all_sizes{{1},          {17},      {8, 8},      {7, 30},          {0, 25},       {25, 0},
                                                {1, 1000},    {5, 6, 7}, {11, 4, 19}, {13, 13, 13, 13}, {1, 40, 0, 6}, {0, 0, 9, 0, 1},
                                                {100, 99, 98}};

/// Returns the rows of a share in each step.
std::vector<Index> rows_of(const PartBatches& batches, int share) {
  std::vector<Index> rows;
  for (Index step = 0; step < batches.steps(); ++step) rows.push_back(batches.rows(step, share).size());
  return rows;
}

std::string told(const std::vector<Index>& sizes, Index global_batch) {
  return files::message_of<pdp::ConfigError>([&] { PartBatches{sizes, global_batch}; }).value_or("nothing");
}

}  // namespace

TEST_CASE("PartBatches takes every sample of every part once in an epoch", "[data][per rank]") {
  const std::vector<Index> sizes = GENERATE(from_range(all_sizes));
  const Index global_batch = GENERATE(5, 7, 12, 64, 100'000);
  CAPTURE(sizes, global_batch);
  const PartBatches batches{sizes, global_batch};
  const int shares = static_cast<int>(sizes.size());
  CHECK(batches.samples() == std::accumulate(sizes.begin(), sizes.end(), Index{0}));
  std::vector<Index> done(sizes.size()), counted(sizes.size());
  for (Index step = 0; step < batches.steps(); ++step) {
    const Index global_rows = batches.count(step, counted);
    CHECK((global_rows >= 1 && global_rows <= global_batch));
    CHECK(global_rows == std::accumulate(counted.begin(), counted.end(), Index{0}));
    for (int share = 0; share < shares; ++share) {
      const Rows rows = batches.rows(step, share);
      const auto at = static_cast<std::size_t>(share);
      CHECK(rows.first == done[at]);
      CHECK(rows.size() == counted[at]);
      CHECK((rows.size() >= 0 && rows.size() <= batches.largest(share)));
      CHECK(batches.largest(share) <= data::shard_rows(global_batch, {share, shares}).size());
      done[at] = rows.last;
    }
  }
  CHECK(done == sizes);
}

TEST_CASE("PartBatches of equal parts are full global batches and a short last one", "[data][per rank]") {
  const PartBatches batches{{10, 10, 10}, 12};
  CHECK(batches.steps() == 3);
  for (int share = 0; share < 3; ++share) CHECK(rows_of(batches, share) == std::vector<Index>{4, 4, 2});
}

TEST_CASE("PartBatches lets unequal parts advance at one pace and end together", "[data][per rank]") {
  const PartBatches batches{{20, 10, 2, 0}, 16};
  CHECK(rows_of(batches, 0) == std::vector<Index>{4, 4, 4, 4, 4});
  CHECK(rows_of(batches, 1) == std::vector<Index>{2, 2, 2, 2, 2});
  CHECK(rows_of(batches, 2) == std::vector<Index>{0, 0, 1, 0, 1});
  CHECK(rows_of(batches, 3) == std::vector<Index>{0, 0, 0, 0, 0});
}

TEST_CASE("PartBatches finds the longest part by its steps if shares differ in size", "[data][per rank]") {
  const PartBatches batches{{12, 12}, 5};  // shares of 2 and 3 rows
  CHECK(batches.steps() == 6);
  CHECK(rows_of(batches, 0) == std::vector<Index>(6, 2));
  CHECK(rows_of(batches, 1) == std::vector<Index>(6, 2));
}

TEST_CASE("PartBatches rejects empty data, sizes out of range and shares without rows", "[data][per rank]") {
  CHECK_THAT(told({0, 0, 0}, 6), StartsWith("expected a dataset of 1 sample or more, but all 3 parts of it are empty"));
  CHECK_THAT(told({4, 4}, 0), StartsWith("expected a global batch of 1 sample or more, found 0"));
  CHECK_THAT(told({4, -1}, 4), StartsWith("part 1 of the dataset has -1 samples, expected 0 to 2147483647"));
  CHECK_THAT(told({Index{1} << 31}, 4), StartsWith("part 0 of the dataset has 2147483648 samples"));
  CHECK_THAT(told({4, 4, 4}, 2),
             StartsWith("a global batch of 2 has no row for share 0 of 3, but there are samples in the part of this share. Choose a "
                        "global batch of 3 or more."));
  CHECK(told({0, 4, 4}, 2) == "nothing");
  const Index most = PartBatches::most_samples;
  const PartBatches largest{{most, most - 1, 1}, most};
  CHECK(largest.rows(largest.steps() - 1, 1).last == most - 1);
  CHECK_THAT(files::message_of<pdp::ConfigError>([] {
               (void)PartBatches{{4, 4}, 2}.rows(4, 0);
             }).value(),
             StartsWith("expected a step from 0 to 3, found 4"));
}

TEST_CASE("PartSampler orders its part by seed, share and epoch", "[data][per rank]") {
  const auto order = [](std::uint64_t seed, int share, Index epoch, bool shuffle = true) {
    PartSampler sampler{PartBatches{{100, 100, 50}, 30}, {share, 3}, seed, shuffle};
    sampler.start(epoch);
    std::vector<Index> all;
    for (Index step = 0; step < sampler.batches().steps(); ++step) std::ranges::copy(sampler.share(step), std::back_inserter(all));
    return all;
  };
  std::set<std::vector<Index>> orders;
  for (const std::uint64_t seed : {1u, 2u})
    for (const int share : {0, 1})
      for (const Index epoch : {0, 1, 2}) {
        auto all = order(seed, share, epoch);
        CHECK(all == order(seed, share, epoch));
        orders.insert(all);
        std::ranges::sort(all);
        CHECK(all == order(seed, share, epoch, false));
      }
  CHECK(orders.size() == 12);
  CHECK(order(1, 2, 0).size() == 50);
  // Detects changes of the generator: a resumed run depends on the order.
  PartSampler sampler{PartBatches{{12, 12}, 24}, {1, 2}, /*seed*/ 1};
  const auto first = sampler.share(0);
  CHECK(std::vector<Index>{first.begin(), first.end()} == std::vector<Index>{6, 5, 4, 9, 10, 2, 0, 3, 7, 11, 8, 1});
}

TEST_CASE("PartSampler of a single part gives the batches of a Sampler", "[data][per rank]") {
  PartSampler part{PartBatches{{70}, 32}, {0, 1}, 9};
  data::Sampler whole{70, 32, 9};
  for (const Index epoch : {0, 3}) {
    part.start(epoch);
    whole.start(epoch);
    REQUIRE(part.batches().steps() == whole.steps());
    for (Index step = 0; step < whole.steps(); ++step) CHECK(std::ranges::equal(part.share(step), whole.batch(step)));
  }
}

TEST_CASE("Loader reads its share of a part and says how many rows each share has", "[data][per rank]") {
  const std::vector<Index> sizes{11, 0, 29};
  const PartBatches batches{sizes, 12};
  for (int share = 0; share < 3; ++share) {
    const auto size = static_cast<std::size_t>(sizes[static_cast<std::size_t>(share)]);
    std::vector<float> x(size);
    std::iota(x.begin(), x.end(), 0.0f);
    const data::PerRank part{data::InMemory<std::int32_t>{pdp::Shape{1}, x, std::vector<std::int32_t>(size)}};
    const Shard shard{share, 3};
    PartSampler sampler{batches, shard, 4};
    data::Loader loader{part, sampler, shard};
    REQUIRE(loader.steps() == batches.steps());
    for (const Index epoch : {0, 2}) {
      sampler.start(epoch);
      loader.start(epoch, epoch);  // also from the middle of an epoch
      std::vector<Index> counted(3);
      for (Index step = epoch; step < batches.steps(); ++step) {
        const auto* batch = loader.next();
        REQUIRE(batch != nullptr);
        CHECK(batch->global_rows == batches.count(step, counted));
        CHECK(std::ranges::equal(batch->share_rows, counted));
        CHECK(std::ranges::equal(batch->samples, sampler.share(step)));
        CHECK(std::ranges::equal(batch->x, sampler.share(step), {}, {}, [](Index number) { return static_cast<float>(number); }));
      }
      CHECK(loader.next() == nullptr);
    }
    CHECK_THAT(files::message_of<pdp::ConfigError>([&] {
                 data::Loader{part, sampler, Shard{(share + 1) % 3, 3}};
               }).value(),
               StartsWith("expected the sampler of share "));
  }
}

}  // namespace part_batches_test
