#include <pdp/data/augmented.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <pdp/data/dataset_view.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/loader.hpp>
#include <pdp/data/normalised.hpp>
#include <pdp/data/part_batches.hpp>
#include <pdp/data/part_sampler.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/data/sampler.hpp>

#include "catch.hpp"

namespace augmented_test {

namespace data = pdp::data;
namespace random = pdp::random;
using data::TrainingEpoch;
using pdp::Index;
using pdp::Shape;

namespace {

constexpr Index width = 3;

/// Returns `count` samples of an endless set, from number `first` on. Their targets are their numbers.
data::InMemory<float> plain(Index count, Index first = 0) {
  std::vector<float> x(static_cast<std::size_t>(width * count)), y(static_cast<std::size_t>(count));
  std::iota(x.begin(), x.end(), static_cast<float>(width * first));
  std::iota(y.begin(), y.end(), static_cast<float>(first));
  return {Shape{width}, x, y};
}

constexpr auto add_noise = [](random::Key key, std::span<float> sample) {
  for (std::size_t i = 0; i < sample.size(); ++i) sample[i] += random::uniform(key, static_cast<Index>(i));
};
auto noisy(Index count, Index first = 0) { return data::Augmented{plain(count, first), add_noise}; }

template <class Data>
std::vector<float> gathered(const Data& set, std::optional<TrainingEpoch> epoch = {}) {
  std::vector<Index> all(static_cast<std::size_t>(set.size()));
  std::iota(all.begin(), all.end(), Index{0});
  std::vector<float> x(all.size() * width), y(all.size());
  if (epoch)
    data::gather_in_epoch(set, all, x, y, *epoch);
  else
    set.gather(all, x, y);
  return x;
}

/// The values of each sample, by the target that is its number.
using Samples = std::map<Index, std::vector<float>>;

/// Reads the rest of an epoch, from batch `first` on, and adds the samples.
template <class Data>
void read(data::Loader<Data>& loader, Index epoch, Index first, Samples& samples) {
  loader.start(epoch, first);
  while (const auto* batch = loader.next())
    for (std::size_t row = 0; row < batch->y.size(); ++row) {
      const auto values = batch->x.subspan(row * width, width);
      const auto [at, is_new] = samples.try_emplace(static_cast<Index>(batch->y[row]), values.begin(), values.end());
      CHECK(is_new);
    }
}

/// Returns the samples of an epoch that `shares` loaders read.
template <class Data>
Samples read_epoch(const Data& set, int shares, Index global_batch, Index epoch, std::uint64_t seed = 5) {
  Samples samples;
  for (int share = 0; share < shares; ++share) {
    data::Loader<Data> loader{set, data::Sampler{set.size(), global_batch, seed}, {share, shares}};
    read(loader, epoch, 0, samples);
  }
  return samples;
}

/// A dataset with one function for both calls of gather.
struct OneFunction {
  using Target = float;
  [[nodiscard]] Index size() const { return 4; }
  [[nodiscard]] Shape sample_shape() const { return Shape{width}; }
  [[nodiscard]] Shape target_shape() const { return Shape{1}; }
  void gather(std::span<const Index>, std::span<float> x, std::span<float>, std::optional<TrainingEpoch> epoch = {}) const {
    for (float& each : x) each = epoch ? static_cast<float>(epoch->number) : -1;
  }
};
static_assert(data::TakesEpoch<OneFunction> && data::TakesEpoch<data::PerRank<OneFunction>>);
static_assert(!data::TakesEpoch<data::InMemory<float>>);

}  // namespace

TEST_CASE("Augmented samples depend on seed, epoch and number alone when a Loader reads them", "[data][augmented]") {
  const auto set = noisy(23);
  const Samples expected = read_epoch(set, 1, 23, 2);
  REQUIRE(expected.size() == 23);
  for (const auto& [number, values] : expected)
    for (std::size_t i = 0; i < width; ++i) {
      const float added = random::uniform(TrainingEpoch{5, 2}.key(number), static_cast<Index>(i));
      CHECK(values[i] == static_cast<float>(width * number + static_cast<Index>(i)) + added);
    }
  for (const int shares : {1, 2, 4})
    for (const Index global_batch : {5, 8, 64}) CHECK(read_epoch(set, shares, global_batch, 2) == expected);

  const Samples next = read_epoch(set, 1, 23, 3), other_seed = read_epoch(set, 1, 23, 2, 6);
  for (const auto& [number, values] : expected) {
    CHECK(next.at(number) != values);
    CHECK(other_seed.at(number) != values);
  }
}

TEST_CASE("Augmented samples are the same when an epoch begins in its middle or again", "[data][augmented]") {
  const auto set = noisy(23);
  const Samples expected = read_epoch(set, 1, 4, 7);
  data::Loader loader{set, data::Sampler{23, 4, 5}};
  Samples discarded, resumed, again;
  read(loader, 6, 0, discarded);
  read(loader, 7, 3, resumed);
  read(loader, 7, 0, again);
  CHECK(resumed.size() == 11);
  for (const auto& [number, values] : resumed) CHECK(expected.at(number) == values);
  CHECK(again == expected);
}

TEST_CASE("Augmented samples of PerRank parts are those of the whole set", "[data][augmented]") {
  const std::vector<Index> sizes{5, 0, 11, 7};
  Samples samples;
  Index first = 0;
  for (int share = 0; share < 4; ++share) {
    const Index size = sizes[static_cast<std::size_t>(share)];
    const data::PartSampler sampler{data::PartBatches{sizes, 8}, {share, 4}, 5};
    if (size > 0) {
      data::Loader loader{data::PerRank{noisy(size, first)}, sampler, {share, 4}};
      read(loader, 2, 0, samples);
    }
    first += size;
  }
  CHECK(samples == read_epoch(noisy(23), 1, 23, 2));
}

TEST_CASE("Augmented does not change the samples when there is no epoch", "[data][augmented]") {
  CHECK(gathered(noisy(9)) == gathered(plain(9)));
  CHECK(gathered(noisy(9), TrainingEpoch{}) != gathered(plain(9)));
  CHECK(gathered(data::Augmented{data::PerRank{noisy(9)}, add_noise}) == gathered(plain(9)));
  CHECK((gathered(OneFunction{})[0] == -1 && gathered(OneFunction{}, TrainingEpoch{0, 4})[0] == 4));
}

TEST_CASE("Augmented inside Augmented draws other numbers", "[data][augmented]") {
  const TrainingEpoch epoch{.seed = 3, .number = 1};
  const auto base = gathered(plain(9)), once = gathered(noisy(9), epoch), twice = gathered(data::Augmented{noisy(9), add_noise}, epoch);
  for (std::size_t i = 0; i < base.size(); ++i) CHECK(twice[i] - once[i] != once[i] - base[i]);
}

TEST_CASE("Wrappers of a dataset give it the epoch", "[data][augmented]") {
  const TrainingEpoch epoch{.seed = 3, .number = 1};
  const auto inner = noisy(9);
  const auto expected = gathered(inner, epoch);
  CHECK(gathered(data::PerRank{inner}, epoch) == expected);
  CHECK(gathered(data::DatasetView<float>{inner}, epoch) == expected);
  CHECK(gathered(data::DatasetView<float>{inner}) == gathered(inner));
  const data::ColumnStatistics statistics{9, {1, 2, 3}, {2, 2, 2}};
  auto normal = expected;
  data::Normalisation{statistics}.apply(normal);
  CHECK(gathered(data::normalised(inner, statistics), epoch) == normal);
}

TEST_CASE("Augmented gives the function the target when it takes one", "[data][augmented]") {
  const float offset = 100;  // a function with state
  const data::Augmented set{plain(4), [offset](random::Key key, std::span<float> sample, std::span<float> target) {
                              sample[0] = random::uniform(key, 0);
                              target[0] = sample[0] + offset;
                            }};
  const std::vector<Index> which{2, 0};
  std::vector<float> x(2 * width), y(2);
  const TrainingEpoch epoch{.number = 8};
  set.gather(which, x, y, epoch);
  for (std::size_t row = 0; row < 2; ++row) {
    CHECK(x[row * width] == random::uniform(epoch.key(which[row]), 0));
    CHECK(y[row] == x[row * width] + 100);
  }
  auto copy = set;
  copy = set;
  CHECK(gathered(copy, epoch) == gathered(set, epoch));
}

}  // namespace augmented_test
