#include <pdp/data/loader.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "catch.hpp"
#include "data/files.hpp"

namespace data = pdp::data;
using data::Loader;
using data::Sampler;
using data::Shard;
using pdp::Index;

namespace {

/// A dataset in which sample i is {i, i + 0.5} of class i. Counts its gathers, and can delay them or throw at one sample.
struct Numbers {
  using Target = std::int32_t;
  struct Shared {
    std::atomic<int> gathers = 0;
    std::atomic<Index> broken = -1;
    std::chrono::milliseconds delay{0};
  };
  Index samples = 0;
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();

  [[nodiscard]] Index size() const { return samples; }
  [[nodiscard]] pdp::Shape sample_shape() const { return pdp::Shape{2}; }
  [[nodiscard]] pdp::Shape target_shape() const { return pdp::Shape{1}; }
  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const {
    data::check_gather(*this, which, x, y);
    if (shared->delay.count() > 0) std::this_thread::sleep_for(shared->delay);
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (which[i] == shared->broken) throw std::runtime_error{"sample " + std::to_string(which[i]) + " is broken"};
      x[2 * i] = static_cast<float>(which[i]);
      x[2 * i + 1] = x[2 * i] + 0.5f;
      y[i] = static_cast<Target>(which[i]);
    }
    ++shared->gathers;
  }
};
static_assert(data::Dataset<Numbers>);

/// Reads an epoch to its end and checks that each share is that of the sampler.
void check_epoch(Loader<Numbers>& loader, Sampler sampler, Shard shard, Index epoch) {
  sampler.start(epoch);
  loader.start(epoch);
  Index step = 0;
  while (const auto* batch = loader.next()) {
    const auto which = sampler.share(step, shard);
    REQUIRE(batch->step == step);
    REQUIRE(batch->rows == static_cast<Index>(which.size()));
    REQUIRE(batch->global_rows == static_cast<Index>(sampler.batch(step).size()));
    REQUIRE((batch->x.size() == 2 * which.size() && batch->y.size() == which.size()));
    for (std::size_t i = 0; i < which.size(); ++i) {
      REQUIRE(batch->y[i] == which[i]);
      REQUIRE((batch->x[2 * i] == static_cast<float>(which[i]) && batch->x[2 * i + 1] == static_cast<float>(which[i]) + 0.5f));
    }
    ++step;
  }
  CHECK(step == sampler.steps());
  CHECK(loader.next() == nullptr);
}

template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 5'000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return condition();
}

}  // namespace

TEST_CASE("Loader returns the share of its shard of every global batch, epoch after epoch", "[data][loader]") {
  const auto [samples, global_batch] =
      GENERATE(std::pair<Index, Index>{1, 1}, std::pair<Index, Index>{5, 2}, std::pair<Index, Index>{103, 8},
               std::pair<Index, Index>{64, 64}, std::pair<Index, Index>{50, 1});
  const Shard shard = GENERATE(Shard{0, 1}, Shard{0, 2}, Shard{1, 2}, Shard{2, 3}, Shard{0, 100});
  const Sampler sampler{samples, global_batch, 5};
  Loader loader{Numbers{samples}, sampler, shard};
  CHECK(loader.steps() == sampler.steps());
  for (const Index epoch : {0, 1, 7}) check_epoch(loader, sampler, shard, epoch);
}

TEST_CASE("Loader::start restarts in the middle of an epoch", "[data][loader]") {
  const Sampler sampler{100, 7, 5};
  Numbers numbers{100};
  numbers.shared->delay = std::chrono::milliseconds{GENERATE(0, 1)};
  Loader loader{numbers, sampler, Shard{}};
  for (Index epoch = 0; epoch < 6; ++epoch) {
    loader.start(epoch);
    for (Index step = 0; step < epoch; ++step) REQUIRE(loader.next() != nullptr);
  }
  check_epoch(loader, sampler, Shard{}, 3);
}

TEST_CASE("Loader gathers the next share while one is in use and does not change that one", "[data][loader]") {
  const Numbers numbers{100};
  const Sampler sampler{100, 10, 5};
  Loader loader{numbers, sampler, Shard{}};
  loader.start(0);
  const auto* batch = loader.next();
  CHECK(soon([&] { return numbers.shared->gathers == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  CHECK(numbers.shared->gathers == 2);  // there is no third buffer
  for (std::size_t i = 0; i < 10; ++i) CHECK(batch->y[i] == sampler.batch(0)[i]);

  CHECK(loader.next()->step == 1);
  CHECK(soon([&] { return numbers.shared->gathers == 3; }));
}

TEST_CASE("Loader::next rethrows an exception of gather on each call until start", "[data][loader]") {
  const Sampler sampler{100, 10, 5, /*shuffle*/ false};
  const Numbers numbers{100};
  numbers.shared->broken = 25;
  Loader loader{numbers, sampler, Shard{}};
  loader.start(0);
  CHECK(loader.next()->step == 0);
  CHECK(loader.next()->step == 1);
  CHECK_THROWS_WITH(loader.next(), "sample 25 is broken");
  CHECK_THROWS_WITH(loader.next(), "sample 25 is broken");

  numbers.shared->broken = -1;
  check_epoch(loader, sampler, Shard{}, 1);
}

TEST_CASE("Loader is destroyed without a hang in every state of its thread", "[data][loader]") {
  Numbers numbers{100};
  const Sampler sampler{100, 10, 5, /*shuffle*/ false};
  SECTION("never started") { Loader{numbers, sampler, Shard{}}; }
  SECTION("after start") { Loader{numbers, sampler, Shard{}}.start(0); }
  SECTION("during a slow gather") {
    numbers.shared->delay = std::chrono::milliseconds{30};
    Loader loader{numbers, sampler, Shard{}};
    loader.start(0);
    CHECK(loader.next() != nullptr);
  }
  SECTION("with both buffers full") {
    Loader loader{numbers, sampler, Shard{}};
    loader.start(0);
    CHECK(soon([&] { return numbers.shared->gathers == 2; }));
  }
  SECTION("after an error that next has not rethrown") {
    numbers.shared->broken = 0;
    Loader loader{numbers, sampler, Shard{}};
    loader.start(0);
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  SECTION("many times, after different numbers of steps") {
    for (int i = 0; i < 300; ++i) {
      std::optional<Loader<Numbers>> loader{std::in_place, numbers, sampler, Shard{}};
      loader->start(i);
      for (int step = 0; step < i % 11; ++step) (void)loader->next();
    }
  }
}

TEST_CASE("Loader rejects a sampler of another dataset, an invalid shard and next before start", "[data][loader]") {
  const auto make = [](Index samples, Shard shard) {
    return files::message_of<pdp::ConfigError>([&] { Loader{Numbers{samples}, Sampler{100, 10, 1}, shard}; });
  };
  CHECK(!make(100, {1, 2}));
  CHECK_THAT(make(99, {}).value(), Contains("over the 99 samples") && Contains("over 100"));
  CHECK_THAT(make(100, {2, 2}).value(), Contains("found index 2 of 2"));
  CHECK(make(100, {0, 0}));

  Loader loader{Numbers{100}, Sampler{100, 10, 1}, Shard{}};
  CHECK_THAT(files::message_of<pdp::ConfigError>([&] { (void)loader.next(); }).value(), Contains("Call start(epoch) before next()"));
}
