#include <pdp/data/augmented.hpp>

#include <pdp/comm/any.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/normalised.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "erased.hpp"

namespace train_augmented_test {

namespace comm = pdp::comm;
namespace data = pdp::data;
namespace nn = pdp::nn;
namespace random = pdp::random;
using namespace pdp::strategy;
using pdp::Index, pdp::Shape;

namespace {

constexpr pdp::Task task{nn::Sequential{nn::Linear{4, 8}, nn::Tanh{}, nn::Linear{8, 1}}, pdp::loss::MeanSquaredError{},
                         pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.5f}};
using Trainer = pdp::Trainer<comm::Any, AnyStrategy, std::remove_const_t<decltype(task)>>;
constexpr Index samples = 26;
constexpr int epochs = 3;

/// The samples that trainings have read, as (epoch, number in the whole set) -> values. Counts gathers without an epoch. Ranks share it.
struct Seen {
  std::mutex mutex;
  std::map<std::pair<Index, Index>, std::vector<float>> values;
  int differences = 0, without_epoch = 0;
};

/// A dataset that wraps another one, and writes down what it gathers.
template <data::Dataset D>
struct Recorded {
  using Target = float;
  D set;
  std::shared_ptr<Seen> seen;

  [[nodiscard]] Index size() const { return set.size(); }
  [[nodiscard]] Shape sample_shape() const { return set.sample_shape(); }
  [[nodiscard]] Shape target_shape() const { return set.target_shape(); }
  void gather(std::span<const Index> which, std::span<float> x, std::span<float> y) const {
    set.gather(which, x, y);
    const std::scoped_lock lock{seen->mutex};
    ++seen->without_epoch;
  }
  void gather(std::span<const Index> which, std::span<float> x, std::span<float> y, const data::TrainingEpoch& epoch) const {
    data::gather_in_epoch(set, which, x, y, epoch);
    const std::scoped_lock lock{seen->mutex};
    for (std::size_t row = 0; row < which.size(); ++row) {
      const auto values = x.subspan(4 * row, 4);
      const std::vector<float> found(values.begin(), values.end());
      const auto [at, is_new] = seen->values.try_emplace({epoch.number, epoch.first_sample + which[row]}, found);
      if (at->second != found) ++seen->differences;
    }
  }
};

/// Returns `count` noisy samples of an endless set, from number `first` on.
auto noisy(Index first, Index count, const std::shared_ptr<Seen>& seen) {
  std::vector<float> x(static_cast<std::size_t>(4 * count)), y;
  random::fill_normal(random::make_key(7, "samples"), 4 * first, std::span{x});
  for (std::size_t i = 0; i < x.size(); i += 4) y.push_back(x[i] * x[i + 1]);
  const auto add_noise = [](random::Key key, std::span<float> sample) {
    for (std::size_t i = 0; i < sample.size(); ++i) sample[i] += 0.1f * random::normal(key, static_cast<Index>(i));
  };
  return Recorded<data::Augmented<data::InMemory<float>, decltype(add_noise)>>{{{Shape{4}, x, y}, add_noise}, seen};
}

struct Run {
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  std::vector<double> losses{};
};

/// Trains for three epochs, or continues from a checkpoint. `save_to`: saves one after step 5.
Run train(int size, const AnyStrategy& strategy, bool divided = false, const std::filesystem::path& save_to = {},
          const std::filesystem::path& from = {}) {
  Run run;
  run.losses = erased::ranks<comm::Thread>(size, [&](comm::Any& world) {
                 Trainer trainer{world, strategy, task, {.global_batch = 8, .seed = 5}};
                 if (!from.empty()) trainer.load(from);
                 std::vector<double> losses;
                 const pdp::FitOptions options{.epochs = from.empty() ? epochs : epochs - 1, .progress = false};
                 const auto on_step = [&](std::int64_t step, const Trainer::Totals& totals) {
                   losses.push_back(totals.mean_loss());
                   if (!save_to.empty() && step == 5) trainer.save(save_to);
                 };
                 const auto share = data::shard_rows(samples, trainer.share());
                 if (divided)
                   trainer.fit(
                       data::PerRank{noisy(share.first, share.size(), run.seen)}, options, [](const pdp::Epoch&) {}, on_step);
                 else
                   trainer.fit(
                       noisy(0, samples, run.seen), options, [](const pdp::Epoch&) {}, on_step);
                 return losses;
               }).front();
  return run;
}

}  // namespace

TEST_CASE("Trainer gets the same augmented samples when the number of ranks or the strategy differs", "[train][augmented]") {
  const Run single = train(1, Single{});
  REQUIRE(single.seen->values.size() == samples * epochs);
  for (Index number = 0; number < samples; ++number) CHECK(single.seen->values.at({0, number}) != single.seen->values.at({1, number}));
  for (const auto& [size, strategy] : std::vector<std::pair<int, AnyStrategy>>{
           {2, DataParallel{}}, {4, DataParallel{}}, {3, Zero{.stage = 3}}, {2, Pipeline<>{.micro_batches = 2}}}) {
    const Run run = train(size, strategy);
    CHECK(run.seen->differences == 0);
    CHECK(run.seen->values == single.seen->values);
    CHECK(pdp::testing::relative_difference(run.losses, single.losses) < 1e-5);
  }
}

TEST_CASE("Trainer gets the same augmented samples when the dataset lies in parts", "[train][augmented]") {
  const Run single = train(1, Single{});
  for (const int size : {1, 2, 4}) {
    const Run run = train(size, DataParallel{}, true);
    CHECK(run.seen->differences == 0);
    CHECK(run.seen->values == single.seen->values);
  }
}

TEST_CASE("Trainer gets the same augmented samples when it continues within an epoch", "[train][augmented]") {
  const files::TemporaryFolder folder;
  const Run whole = train(1, Single{}, false, folder / "run");
  const Run resumed = train(1, Single{}, false, {}, folder / "run");
  REQUIRE(resumed.losses.size() == whole.losses.size() - 6);
  CHECK(std::vector<double>(whole.losses.begin() + 6, whole.losses.end()) == resumed.losses);
  for (const auto& [at, values] : resumed.seen->values) CHECK(whole.seen->values.at(at) == values);
}

TEST_CASE("Trainer compares and evaluates datasets without an epoch", "[train][augmented]") {
  const auto seen = std::make_shared<Seen>();
  const auto losses = erased::ranks<comm::Thread>(2, [&](comm::Any& world) {
    Trainer trainer{world, DataParallel{}, task, {.global_batch = 8, .seed = 5}};
    const auto set = noisy(0, samples, seen);
    trainer.fit(set, {.epochs = 1, .progress = false, .validation = &set}, [](const pdp::Epoch&) {});
    return std::pair{trainer.evaluate(set).loss, trainer.evaluate(set.set).loss};
  });
  CHECK(losses[0].first == losses[0].second);
  CHECK(seen->values.size() == samples);  // those of the training alone
  CHECK(seen->without_epoch >= 6);
}

}  // namespace train_augmented_test
