#include <pdp/comm/any.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/part_sampler.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "erased.hpp"

namespace per_rank_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::strategy;
using pdp::Index, pdp::Shape;
using Samples = pdp::data::InMemory<std::int32_t>;
using pdp::data::PerRank;

namespace {

constexpr pdp::Task task{nn::Sequential{nn::Linear{6, 16}, nn::Tanh{}, nn::Linear{16, 3}}, pdp::loss::CrossEntropy{},
                         pdp::optim::Sgd{.lr = 0.2f, .momentum = 0.5f}};
using Trainer = pdp::Trainer<comm::Any, AnyStrategy, std::remove_const_t<decltype(task)>>;
using Sizes = std::vector<Index>;
constexpr int epochs = 3;

/// Returns `count` samples of an endless set, from number `first` on.
Samples samples(Index first, Index count) {
  std::vector<float> x(static_cast<std::size_t>(count * 6));
  pdp::random::fill_normal(pdp::random::make_key(7, "samples"), first * 6, std::span{x});
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 6) classes.push_back(row[0] > 0 ? 2 : row[1] > 0 ? 1 : 0);
  return {Shape{6}, x, classes};
}
Index first_of(const Sizes& sizes, int share) {
  Index first = 0;
  for (int before = 0; before < share; ++before) first += sizes[static_cast<std::size_t>(before)];
  return first;
}
PerRank<Samples> part(const Sizes& sizes, int share) {
  return PerRank{samples(first_of(sizes, share), sizes[static_cast<std::size_t>(share)])};
}

struct Run {
  std::vector<double> losses, rows, epochs;
  pdp::engine::Totals evaluated;
  std::vector<pdp::checkpoint::Tensor> parameters;
};

/// Trains on the whole set on one rank. Each step gets the samples that the shares take from their parts, one share after the other.
Run train_on_whole(const Sizes& sizes, Index global_batch) {
  return erased::ranks<comm::Thread>(1,
                                     [&](comm::Any& world) {
                                       Trainer trainer{world, Single{}, task, {.global_batch = global_batch, .seed = 5}};
                                       const int shares = static_cast<int>(sizes.size());
                                       const pdp::data::PartBatches batches{sizes, global_batch};
                                       const Samples whole = samples(0, batches.samples());
                                       Run run;
                                       for (Index epoch = 0; epoch < epochs; ++epoch) {
                                         double loss = 0;
                                         std::vector<Index> seen;
                                         for (Index step = 0; step < batches.steps(); ++step) {
                                           std::vector<Index> which;
                                           for (int share = 0; share < shares; ++share) {
                                             pdp::data::PartSampler sampler{batches, {share, shares}, 5};
                                             sampler.start(epoch);
                                             for (const Index number : sampler.share(step))
                                               which.push_back(first_of(sizes, share) + number);
                                           }
                                           std::vector<float> x(which.size() * 6);
                                           std::vector<std::int32_t> y(which.size());
                                           whole.gather(which, x, y);
                                           const auto totals = trainer.step(x, y);
                                           run.losses.push_back(totals.mean_loss());
                                           run.rows.push_back(totals.rows);
                                           loss += totals.loss;
                                           seen.insert(seen.end(), which.begin(), which.end());
                                         }
                                         std::ranges::sort(seen);
                                         for (Index number = 0; number < batches.samples(); ++number)
                                           if (std::ranges::count(seen, number) != 1) throw std::logic_error{"a sample is not used once"};
                                         run.epochs.push_back(loss / static_cast<double>(batches.samples()));
                                       }
                                       run.evaluated = trainer.evaluate(whole);
                                       run.parameters = trainer.parameters();
                                       return run;
                                     })
      .front();
}

/// Trains on the parts. Calls after(trainer, number of the step) after each step.
std::vector<Run> train_on_parts(
    int size, const AnyStrategy& strategy, const Sizes& sizes, Index global_batch, const std::filesystem::path& from = {},
    const std::function<void(Trainer&, std::int64_t)>& after = [](Trainer&, std::int64_t) {}) {
  return erased::ranks<comm::Thread>(size, [&](comm::Any& world) {
    Trainer trainer{world, strategy, task, {.global_batch = global_batch, .seed = 5}};
    const auto mine = part(sizes, trainer.share().index);
    if (!from.empty()) trainer.load(from);
    Run run;
    trainer.fit(
        mine, {.epochs = epochs - static_cast<int>(from.empty() ? 0 : 1), .progress = false},
        [&](const pdp::Epoch& epoch) { run.epochs.push_back(epoch.loss); },
        [&](std::int64_t step, const Trainer::Totals& totals) {
          run.losses.push_back(totals.mean_loss());
          run.rows.push_back(totals.rows);
          after(trainer, step);
        });
    run.evaluated = trainer.evaluate(mine);
    run.parameters = trainer.parameters();
    return run;
  });
}

void check_like_whole(int size, const AnyStrategy& strategy, const Sizes& sizes, Index global_batch) {
  CAPTURE(size, sizes, global_batch);
  const Run whole = train_on_whole(sizes, global_batch);
  const auto runs = train_on_parts(size, strategy, sizes, global_batch);
  for (const Run& run : runs) {
    CHECK(run.rows == whole.rows);
    CHECK(pdp::testing::relative_difference(run.losses, whole.losses) < 1e-5);
    CHECK(pdp::testing::relative_difference(run.epochs, whole.epochs) < 1e-5);
    CHECK(run.evaluated.rows == whole.evaluated.rows);
    CHECK(run.evaluated.correct == whole.evaluated.correct);
    CHECK(run.evaluated.loss == Approx(whole.evaluated.loss).epsilon(1e-5));
  }
  REQUIRE(runs.front().parameters.size() == whole.parameters.size());
  for (std::size_t t = 0; t < whole.parameters.size(); ++t)
    CHECK(pdp::testing::relative_difference(runs.front().parameters[t].values, whole.parameters[t].values) < 1e-4);
}

using Calls = std::function<void(Trainer&, int rank)>;

/// Returns the error message of each rank that calls f(trainer, rank). A message is empty if nothing was thrown.
std::vector<std::string> told(int size, const AnyStrategy& strategy, Index global_batch, const Calls& f) {
  return erased::ranks<comm::Thread>(size, [&](comm::Any& world) -> std::string {
    Trainer trainer{world, strategy, task, {.global_batch = global_batch, .seed = 5}};
    try {
      f(trainer, world.rank());
    } catch (const pdp::ConfigError& error) {
      return error.what();
    }
    return "";
  });
}
void check_told(const std::vector<std::string>& messages, const std::string& expected) {
  for (const std::string& each : messages) CHECK(each == expected);
}
void fit(Trainer& trainer, const auto& data, int count = 1) {
  trainer.fit(data, {.epochs = count, .progress = false}, [](const pdp::Epoch&) {});
}

}  // namespace

TEST_CASE("Trainer on PerRank parts trains and evaluates like one rank on the whole set", "[train][per rank]") {
  const Sizes sizes = GENERATE(from_range(
      std::vector<Sizes>{{20}, {18, 18}, {7, 30}, {0, 25}, {25, 0}, {1, 1}, {11, 4, 19}, {0, 0, 9}, {13, 13, 13, 13}, {1, 40, 0, 6}}));
  const Index global_batch = GENERATE(12, 7, 64);
  check_like_whole(static_cast<int>(sizes.size()), DataParallel{}, sizes, global_batch);
}

TEST_CASE("Trainer on PerRank parts trains like one rank under every strategy", "[train][per rank]") {
  check_like_whole(2, DataParallel{.accumulate = 3}, {7, 30}, 12);
  for (const int stage : {1, 2, 3}) check_like_whole(3, Zero{.stage = stage}, {11, 0, 19}, 12);
  check_like_whole(2, Pipeline<>{.micro_batches = 2}, {23}, 12);
  check_like_whole(2, TensorParallel{}, {23}, 12);
  check_like_whole(4, Hybrid<>{.mesh = {2, 2, 1}, .micro_batches = 2}, {7, 20}, 12);
  check_like_whole(4, Hybrid<>{.mesh = {2, 1, 2}, .micro_batches = 2}, {20, 0}, 12);
}

TEST_CASE("PerRank on one rank trains as the dataset itself", "[train][per rank]") {
  const auto parameters = [](const auto& data) {
    return erased::ranks<comm::Thread>(1,
                                       [&](comm::Any& world) {
                                         Trainer trainer{world, Single{}, task, {.global_batch = 12, .seed = 5}};
                                         fit(trainer, data, 2);
                                         return trainer.parameters();
                                       })
        .front();
  };
  const auto whole = parameters(samples(0, 31)), divided = parameters(PerRank{samples(0, 31)});
  REQUIRE(whole.size() == 4);
  for (std::size_t t = 0; t < whole.size(); ++t) CHECK(divided[t].values == whole[t].values);
}

TEST_CASE("Trainer::fit without shuffle takes the samples of a PerRank in order", "[train][per rank]") {
  erased::ranks<comm::Thread>(2, [&](comm::Any& world) {
    Trainer trainer{world, DataParallel{}, task, {.global_batch = 4, .seed = 5}};
    const auto [x, y] = [&] {
      std::vector<float> inputs(12);
      std::vector<std::int32_t> classes(2);
      samples(0, 8).gather(std::vector<Index>{4 * world.rank(), 4 * world.rank() + 1}, inputs, classes);
      return std::pair{inputs, classes};
    }();
    Trainer other{world, DataParallel{}, task, {.global_batch = 4, .seed = 5}};
    const double expected = other.step(x, y).loss;
    double found = 0;
    trainer.fit(
        part({4, 4}, world.rank()), {.epochs = 1, .shuffle = false, .progress = false}, [](const pdp::Epoch&) {},
        [&](std::int64_t step, const Trainer::Totals& totals) { found = step == 0 ? totals.loss : found; });
    if (found != expected) throw std::logic_error{"other samples"};
  });
}

TEST_CASE("Trainer rejects different parts on ranks that share a part, on every rank", "[train][per rank]") {
  const std::string remedy = " of each batch; give the ranks of a pipeline or of a tensor-parallel group the same part";
  const auto check = [&](const AnyStrategy& strategy, int size, const std::string& words, const std::function<Samples(int)>& data) {
    check_told(told(size, strategy, 12, [&](Trainer& trainer, int rank) { fit(trainer, PerRank{data(rank)}); }), words + remedy);
    check_told(told(size, strategy, 12, [&](Trainer& trainer, int rank) { (void)trainer.evaluate(PerRank{data(rank)}); }), words + remedy);
  };
  check(Pipeline<>{.micro_batches = 2}, 2,
        "rank 1 was given a data::PerRank with 9 samples instead of the 10 of rank 0, but both take share 0",
        [](int rank) { return samples(0, 10 - rank); });
  check(TensorParallel{}, 2, "rank 1 was given a data::PerRank with other samples than rank 0, but both take share 0",
        [](int rank) { return samples(rank, 10); });
  check(Hybrid<>{.mesh = {2, 2, 1}, .micro_batches = 2}, 4,
        "rank 3 was given a data::PerRank with other samples than rank 2, but both take share 1",
        [](int rank) { return samples(rank == 3 ? 50 : rank / 2 * 20, 10); });
}

TEST_CASE("Trainer rejects per-rank data without PerRank, and names it as the remedy, on every rank", "[train][per rank]") {
  const std::string remedy = "; give all ranks the same dataset, or data::PerRank{part} if each rank has a part of its own";
  const auto check = [&](const std::string& words, const std::function<Samples(int)>& data) {
    for (const auto& [size, strategy] : {std::pair<int, AnyStrategy>{3, DataParallel{}},
                                         {3, Zero{.stage = 3}},
                                         {2, Pipeline<>{.micro_batches = 2}},
                                         {2, TensorParallel{}}}) {
      check_told(told(size, strategy, 12, [&](Trainer& trainer, int rank) { fit(trainer, data(rank)); }), words + remedy);
      check_told(told(size, strategy, 12, [&](Trainer& trainer, int rank) { (void)trainer.evaluate(data(rank)); }), words + remedy);
    }
  };
  check("rank 1 was given samples in the dataset = 31, but rank 0 samples in the dataset = 30",
        [](int rank) { return samples(0, 30 + (rank == 1 ? 1 : 0)); });
  check("rank 1 was given another dataset than rank 0", [](int rank) { return samples(100 * rank, 30); });
  check("rank 1 was given another dataset than rank 0", [](int rank) {
    return Samples{Shape{6}, std::vector<float>(30 * 6), std::vector<std::int32_t>(30, rank)};
  });
  check("rank 1 was given another dataset than rank 0", [](int rank) {
    std::vector<float> x(5 * 6);
    x[29] = static_cast<float>(rank);  // all samples of a small set are compared
    return Samples{Shape{6}, x, std::vector<std::int32_t>(5)};
  });
}

TEST_CASE("Trainer rejects PerRank on some of the ranks, on every rank", "[train][per rank]") {
  check_told(told(3, DataParallel{}, 12,
                  [](Trainer& trainer, int rank) {
                    if (rank == 2)
                      fit(trainer, PerRank{samples(0, 30)});
                    else
                      fit(trainer, samples(0, 30));
                  }),
             "rank 2 was given data::PerRank = 1, but rank 0 data::PerRank = 0; give a data::PerRank on all ranks, or on none");
}

TEST_CASE("Trainer compares the data of the ranks without a message in a step", "[train][per rank]") {
  const auto calls = [](const auto& data_of, int count) {
    return pdp::testing::ranks<comm::Thread>(2,
                                             [&](comm::Thread& thread) {
                                               comm::Instrumented world{std::move(thread)};
                                               pdp::Trainer trainer{world, DataParallel{}, task, {.global_batch = 8, .seed = 5}};
                                               const auto data = data_of(world.rank());
                                               world.clear_traffic();
                                               trainer.fit(data, {.epochs = count, .progress = false}, [](const pdp::Epoch&) {});
                                               std::uint64_t sum = 0;
                                               for (std::size_t verb = 0; verb < comm::verbs; ++verb)
                                                 sum += world.traffic(static_cast<comm::Verb>(verb)).calls;
                                               return sum;
                                             })
        .front();
  };
  const auto whole = [](int) { return samples(0, 40); };            // 5 steps
  const auto parts = [](int rank) { return part({20, 3}, rank); };  // 5 steps
  CHECK(calls(parts, 1) - calls(parts, 0) == calls(whole, 1) - calls(whole, 0));
  CHECK(calls(parts, 0) == calls(whole, 0) + 1);  // one exchange of the sizes
}

TEST_CASE("A training on PerRank parts continues from the middle of an epoch to the bit", "[train][per rank][checkpoint]") {
  for (const auto& [size, strategy, sizes] : {std::tuple<int, AnyStrategy, Sizes>{3, DataParallel{}, {11, 0, 19}},
                                              {2, Zero{.stage = 3}, {7, 30}},
                                              {4, Hybrid<>{.mesh = {2, 2, 1}, .micro_batches = 2}, {7, 20}}}) {
    CAPTURE(size, sizes);
    const files::TemporaryFolder folder;
    const auto steps = static_cast<std::size_t>(pdp::data::PartBatches{sizes, 12}.steps());
    const auto last = static_cast<std::int64_t>(steps + 1);  // in the second epoch
    const auto uninterrupted = train_on_parts(size, strategy, sizes, 12, {}, [&](Trainer& trainer, std::int64_t step) {
      if (step == last) trainer.save(folder / "run");
    });
    const auto resumed = train_on_parts(size, strategy, sizes, 12, folder / "run");
    REQUIRE(uninterrupted.front().losses.size() == 3 * steps);
    const std::vector<double> expected{uninterrupted.front().losses.begin() + last + 1, uninterrupted.front().losses.end()};
    CHECK(resumed.front().losses == expected);
    CHECK(resumed.front().epochs == std::vector<double>{uninterrupted.front().epochs[1], uninterrupted.front().epochs[2]});
  }
}

TEST_CASE("A training on PerRank parts rejects other parts in the middle of an epoch, on every rank", "[train][per rank][checkpoint]") {
  const files::TemporaryFolder folder;
  train_on_parts(2, DataParallel{}, {7, 30}, 12, {}, [&](Trainer& trainer, std::int64_t step) {
    if (step == 1) trainer.save(folder / "middle");
  });
  const auto resume = [&](int size, const std::function<void(Trainer&, int)>& f) {
    return told(size, DataParallel{}, 12, [&](Trainer& trainer, int rank) {
      trainer.load(folder / "middle");
      f(trainer, rank);
    });
  };
  const std::string remedy = "; continue with the same, or from a checkpoint at the end of an epoch";
  const std::string from = "the checkpoint is from the middle of an epoch with ";
  check_told(resume(3,
                    [](Trainer& trainer, int rank) {
                      fit(trainer, part({7, 20, 10}, rank));
                    }),
             from + "number of parts in data::PerRank = 2, but here it is 3" + remedy);
  check_told(resume(2, [](Trainer& trainer, int) { fit(trainer, samples(0, 37)); }),
             from + "number of parts in data::PerRank = 2, but here it is 0" + remedy);
  check_told(resume(2,
                    [](Trainer& trainer, int rank) {
                      fit(trainer, part({8, 29}, rank));
                    }),
             from + "size of part 0 of data::PerRank = 7, but here it is 8" + remedy);
  check_told(resume(2, [](Trainer& trainer, int rank) { fit(trainer, part({7, 30}, rank)); }), "");
}

TEST_CASE("A training on PerRank parts may change its ranks and parts between epochs", "[train][per rank][checkpoint]") {
  const files::TemporaryFolder folder;
  told(2, DataParallel{}, 12, [&](Trainer& trainer, int rank) {
    fit(trainer, part({7, 30}, rank));
    trainer.save(folder / "end");
  });
  check_told(told(3, DataParallel{}, 12,
                  [&](Trainer& trainer, int rank) {
                    trainer.load(folder / "end");
                    fit(trainer, part({20, 3, 5}, rank));
                    fit(trainer, samples(0, 30));
                    fit(trainer, part({1, 0, 50}, rank));
                  }),
             "");
}

TEST_CASE("Trainer rejects a dataset without samples, with one sentence on every rank", "[train][per rank][bad input]") {
  const std::string none = "expected a dataset of 1 sample or more, found 0; check where the data comes from";
  const std::string parts =
      "expected a dataset of 1 sample or more, but the data::PerRank of every rank is empty; check where the data comes from";
  for (const int size : {1, 3}) {
    check_told(told(size, DataParallel{}, 12, [](Trainer& trainer, int) { fit(trainer, samples(0, 0)); }), none);
    check_told(told(size, DataParallel{}, 12, [](Trainer& trainer, int) { (void)trainer.evaluate(samples(0, 0)); }), none);
    check_told(told(size, DataParallel{}, 12, [](Trainer& trainer, int) { fit(trainer, PerRank{samples(0, 0)}); }), parts);
    check_told(told(size, DataParallel{}, 12, [](Trainer& trainer, int) { (void)trainer.evaluate(PerRank{samples(0, 0)}); }), parts);
  }
}

TEST_CASE("Trainer rejects a global batch without a row for the share of a part, on every rank", "[train][per rank][bad input]") {
  check_told(
      told(3, DataParallel{}, 2, [](Trainer& trainer, int) { fit(trainer, PerRank{samples(0, 5)}); }),
      "a global batch of 2 has no row for share 0 of 3, but there are samples in the part of this share. Choose a global batch of 3 or "
      "more.");
}

TEST_CASE("Trainer trains on one sample, and in one short batch on fewer samples than a global batch", "[train][per rank]") {
  for (const Index count : {1, 5})
    for (const int size : {1, 2, 4}) {
      const auto losses = erased::ranks<comm::Thread>(size, [&](comm::Any& world) {
        Trainer trainer{world, DataParallel{}, task, {.global_batch = 1000, .seed = 5}};
        std::vector<double> found;
        trainer.fit(
            samples(0, count), {.epochs = 3, .progress = false}, [](const pdp::Epoch&) {},
            [&](std::int64_t, const Trainer::Totals& totals) {
              found.push_back(totals.mean_loss());
              if (totals.rows != static_cast<double>(count)) throw std::logic_error{"other rows"};
            });
        if (trainer.evaluate(samples(0, count)).rows != static_cast<double>(count)) throw std::logic_error{"other rows"};
        return found;
      });
      CHECK(losses.front().size() == 3);
      CHECK(losses.front()[2] < losses.front()[0]);
      check_like_whole(1, Single{}, {count}, 1000);
    }
}

TEST_CASE("Trainer::fit with 0 epochs does nothing, and rejects a negative number on every rank", "[train][per rank]") {
  check_told(told(3, DataParallel{}, 12,
                  [](Trainer& trainer, int rank) {
                    const auto before = trainer.parameters();
                    fit(trainer, samples(0, 30), 0);
                    fit(trainer, part({7, 0, 9}, rank), 0);
                    const auto after = trainer.parameters();
                    for (std::size_t t = 0; t < after.size(); ++t)
                      if (after[t].values != before[t].values) throw std::logic_error{"parameters have changed"};
                    if (trainer.steps() != 0) throw std::logic_error{"a step was made"};
                  }),
             "");
  for (const std::string& each : told(3, DataParallel{}, 12, [](Trainer&trainer, int) { fit(trainer, samples(0, 30), -2); }))
    CHECK_THAT(each, StartsWith("epochs = -2 was given; fit takes 0 to "));
}

}  // namespace per_rank_test
