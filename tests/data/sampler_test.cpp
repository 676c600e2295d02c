#include <pdp/data/sampler.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "catch.hpp"
#include "data/files.hpp"

namespace sampler_test {

namespace data = pdp::data;
using data::Sampler;
using data::Shard;
using pdp::Index;

namespace {

std::vector<Index> values(std::span<const Index> span) { return {span.begin(), span.end()}; }

std::vector<Index> epoch_order(const Sampler& sampler) {
  std::vector<Index> order;
  for (Index step = 0; step < sampler.steps(); ++step) std::ranges::copy(sampler.batch(step), std::back_inserter(order));
  return order;
}

std::vector<Index> counted(Index samples) {
  std::vector<Index> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), Index{0});
  return order;
}

}  // namespace

TEST_CASE("Sampler visits every sample once in each epoch, including a short last batch", "[data][sampler]") {
  const auto [samples, global_batch] =
      GENERATE(std::pair<Index, Index>{1, 1}, std::pair<Index, Index>{7, 7}, std::pair<Index, Index>{7, 3},
               std::pair<Index, Index>{1000, 1}, std::pair<Index, Index>{9000, 256}, std::pair<Index, Index>{101, 100});
  Sampler sampler{samples, global_batch, /*seed*/ 3};
  CHECK(sampler.steps() == (samples + global_batch - 1) / global_batch);
  for (const Index epoch : {0, 1, 5}) {
    sampler.start(epoch);
    for (Index step = 0; step + 1 < sampler.steps(); ++step) CHECK(static_cast<Index>(sampler.batch(step).size()) == global_batch);
    auto order = epoch_order(sampler);
    std::ranges::sort(order);
    CHECK(order == counted(samples));
  }
}

TEST_CASE("Sampler derives the order from the seed and the number of the epoch only", "[data][sampler]") {
  Sampler a{500, 64, 1}, b{500, 64, 1}, other_seed{500, 64, 2};
  std::set<std::vector<Index>> orders;
  for (const Index epoch : {0, 1, 2, 3}) {
    a.start(epoch);
    orders.insert(epoch_order(a));
  }
  CHECK(orders.size() == 4);

  b.start(3);
  CHECK(epoch_order(a) == epoch_order(b));
  other_seed.start(3);
  CHECK(epoch_order(a) != epoch_order(other_seed));
}

TEST_CASE("Sampler keeps its order on every platform and in every version", "[data][sampler]") {
  // Detects changes of the generator: a resumed run depends on the order.
  CHECK(epoch_order(Sampler{12, 5, /*seed*/ 1}) == std::vector<Index>{9, 8, 0, 7, 5, 11, 1, 3, 10, 6, 4, 2});
}

TEST_CASE("Sampler without shuffle keeps the order of the dataset in every epoch", "[data][sampler]") {
  Sampler sampler{10, 4, 1, /*shuffle*/ false};
  CHECK(epoch_order(sampler) == counted(10));
  sampler.start(7);
  CHECK(epoch_order(sampler) == counted(10));
}

TEST_CASE("Sampler draws every order of three samples equally often", "[data][sampler]") {
  std::map<std::vector<Index>, int> counts;
  Sampler sampler{3, 3, 1};
  for (Index epoch = 0; epoch < 6'000; ++epoch) {
    sampler.start(epoch);
    ++counts[epoch_order(sampler)];
  }
  CHECK(counts.size() == 6);
  for (const auto& [order, count] : counts) CHECK(std::abs(count - 1'000) < 150);
}

TEST_CASE("Sampler::share cuts a global batch into contiguous shares that differ by one row at most", "[data][sampler]") {
  const Index global_batch = GENERATE(1, 2, 7, 64, 100);
  const int shards = GENERATE(1, 2, 3, 4, 7, 128);
  Sampler sampler{100, global_batch, 9};
  sampler.start(2);
  for (Index step = 0; step < sampler.steps(); ++step) {
    std::vector<Index> joined;
    std::size_t least = 1000, most = 0;
    for (int index = 0; index < shards; ++index) {
      const auto share = sampler.share(step, {index, shards});
      std::ranges::copy(share, std::back_inserter(joined));
      least = std::min(least, share.size());
      most = std::max(most, share.size());
      CHECK(static_cast<Index>(share.size()) <= sampler.largest_share({index, shards}));
    }
    CHECK(joined == values(sampler.batch(step)));
    CHECK(most - least <= 1);
  }
}

TEST_CASE("shard_rows returns contiguous rows whose borders are rounded down", "[data][sampler]") {
  static_assert(data::shard_rows(10, {0, 4}) == data::Rows{0, 2});
  static_assert(data::shard_rows(10, {1, 4}) == data::Rows{2, 5});
  static_assert(data::shard_rows(10, {3, 4}) == data::Rows{7, 10});
  static_assert(data::shard_rows(1, {0, 2}).size() == 0, "a share may be empty");
  static_assert(data::shard_rows(0, {1, 2}).size() == 0);
}

TEST_CASE("Sampler makes one short batch of fewer samples than a global batch", "[data][sampler]") {
  Sampler sampler{3, 1000, 1};
  CHECK(sampler.steps() == 1);
  CHECK(sampler.largest_share({0, 2}) == 2);
  for (const Index epoch : {0, 1}) {
    sampler.start(epoch);
    auto order = epoch_order(sampler);
    std::ranges::sort(order);
    CHECK(order == counted(3));
    CHECK(sampler.share(0, {1, 2}).size() == 2);
    CHECK(sampler.share(0, {0, 1000}).empty());
  }
}

TEST_CASE("Sampler rejects a global batch or a training set of less than 1 sample, with numbers", "[data][sampler]") {
  const auto make = [](Index samples, Index global_batch) {
    return files::message_of<pdp::ConfigError>([&] { Sampler{samples, global_batch, 1}; });
  };
  CHECK(!make(10, 10));
  CHECK_THAT(make(10, 0).value(), StartsWith("expected a global batch of 1 sample or more, found 0."));
  CHECK_THAT(make(10, -5).value(), Contains("found -5"));
  CHECK(!make(10, 11));
  CHECK_THAT(make(0, 1).value(), Contains("training set of 1 sample or more, found 0"));
}

TEST_CASE("Sampler::share rejects a step or a shard out of range", "[data][sampler]") {
  const Sampler sampler{10, 4, 1};
  const auto share = [&](Index step, Shard shard) {
    return files::message_of<pdp::ConfigError>([&] { (void)sampler.share(step, shard); });
  };
  CHECK(!share(2, {0, 1}));
  CHECK_THAT(share(3, {0, 1}).value(), Contains("a step from 0 to 2") && Contains("found 3"));
  CHECK(share(-1, {0, 1}));
  CHECK_THAT(share(0, {2, 2}).value(), Contains("found index 2 of 2"));
  CHECK(share(0, {-1, 2}));
  CHECK(share(0, {0, 0}));
}

}  // namespace sampler_test
