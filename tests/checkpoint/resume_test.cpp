#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
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

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace resume_test {

namespace fs = std::filesystem;
namespace nn = pdp::nn;
namespace strategy = pdp::strategy;
using pdp::Index, pdp::Shape;
using pdp::comm::Thread;
using strategy::AnyStrategy;
using Samples = pdp::data::InMemory<std::int32_t>;

namespace {

// Every width is a multiple of 2, 3, 4 and 8, and there are layers for a pipeline of 8 ranks.
constexpr nn::Sequential model{nn::Linear{6, 24},  nn::Tanh{}, nn::Linear{24, 24}, nn::Tanh{}, nn::Linear{24, 24}, nn::Tanh{},
                               nn::Linear{24, 24}, nn::Tanh{}, nn::Linear{24, 24}, nn::Tanh{}, nn::Linear{24, 3}};
constexpr pdp::Task classifier{model, pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 0.01f},
                               pdp::optim::Linear{.steps = 100, .to = 0.1f}};
using Trainer = pdp::Trainer<Thread, AnyStrategy, std::remove_const_t<decltype(classifier)>>;

Samples samples() {
  constexpr std::size_t count = 70;  // 6 batches an epoch, the last one of 10 rows
  const auto x = pdp::testing::normal(count * 6, 3);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 6) classes.push_back(row[0] > 0 ? 2 : row[1] > 0 ? 1 : 0);
  return {Shape{6}, x, classes};
}

struct Way {
  std::string name;
  int ranks;
  AnyStrategy strategy;
};

std::vector<Way> ways() {
  std::vector<Way> all{{"single", 1, strategy::Single{}}};
  for (const int ranks : {1, 2, 3, 4, 8}) {
    all.push_back({"data", ranks, strategy::DataParallel{}});
    for (const int stage : {1, 2, 3}) all.push_back({"zero " + std::to_string(stage), ranks, strategy::Zero{.stage = stage}});
    all.push_back({"tensor", ranks, strategy::TensorParallel{}});
    if (ranks <= 6) all.push_back({"pipeline", ranks, strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 3}});
  }
  return all;
}

struct Run {
  std::vector<double> losses;
  std::vector<std::vector<pdp::checkpoint::Tensor>> parameters;
  std::vector<pdp::Epoch> epochs;
};

/// Trains for some epochs, from a checkpoint if `from` is given. Saves one to `to` after step `save_at`, if that is given.
Run train(const Way& way, int epochs, const fs::path& from = {}, const fs::path& to = {}, std::int64_t save_at = 0) {
  const Samples data = samples();
  return pdp::testing::ranks<Thread>(way.ranks,
                                     [&](Thread& world) {
                                       Trainer trainer{world, way.strategy, classifier, {.global_batch = 12, .seed = 5}};
                                       if (!from.empty()) trainer.load(from);
                                       Run run;
                                       trainer.fit(
                                           data, {.epochs = epochs}, [&](const pdp::Epoch& epoch) { run.epochs.push_back(epoch); },
                                           [&](std::int64_t step, const Trainer::Totals& totals) {
                                             run.losses.push_back(totals.mean_loss());
                                             if (step + 1 == save_at)
                                               trainer.save(to, {{"note", "a text"}, {"number", std::int64_t{7}}, {"ratio", 0.1}});
                                           });
                                       run.parameters.push_back(trainer.parameters());
                                       return run;
                                     })
      .front();
}

}  // namespace

TEST_CASE("A checkpoint of any strategy continues under any other with the losses of an uninterrupted run", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const std::vector<Way> all = ways();
  const Run uninterrupted = train(all.front(), 5);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const fs::path saved = folder / std::to_string(i);
    train(all[i], 2, {}, saved, 9);
    const Way& other = all[(7 * i + 3) % all.size()];
    const Run resumed = train(other, 4, saved);
    REQUIRE(resumed.losses.size() == 21);
    for (std::size_t step = 0; step < 20; ++step) {
      CAPTURE(all[i].name, all[i].ranks, other.name, other.ranks, step);
      REQUIRE_THAT(resumed.losses[step], WithinRel(uninterrupted.losses[9 + step], 1e-5));
    }
  }
}

TEST_CASE("A training with the same strategy continues to the bit", "[checkpoint]") {
  const files::TemporaryFolder folder;
  for (const Way& way : ways()) {
    const Run uninterrupted = train(way, 3, {}, folder / "run", 8);
    const Run resumed = train(way, 2, folder / "run");
    CAPTURE(way.name, way.ranks);
    REQUIRE(resumed.losses == std::vector<double>{uninterrupted.losses.begin() + 8, uninterrupted.losses.end()});
    REQUIRE(resumed.parameters.front().size() == uninterrupted.parameters.front().size());
    for (std::size_t t = 0; t < resumed.parameters.front().size(); ++t)
      REQUIRE(resumed.parameters.front()[t].values == uninterrupted.parameters.front()[t].values);
    REQUIRE(resumed.epochs.front().loss == uninterrupted.epochs[1].loss);
    fs::remove_all(folder / "run");
  }
}

TEST_CASE("A fit that is interrupted and started again ends with the parameters of an uninterrupted one", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const Samples data = samples();
  struct Interrupted {};
  /// Trains for 4 epochs, or until the step `last`.
  const auto fit = [&](const Way& way, std::int64_t last) {
    return pdp::testing::ranks<Thread>(way.ranks,
                                       [&](Thread& world) {
                                         Trainer trainer{world, way.strategy, classifier, {.global_batch = 12, .seed = 5}};
                                         std::vector<int> epochs;
                                         try {
                                           trainer.fit(
                                               data,
                                               {.epochs = 4, .checkpoint = {.directory = folder / way.name, .every_steps = 5, .keep = 2}},
                                               [&](const pdp::Epoch& epoch) { epochs.push_back(epoch.number); },
                                               [&](std::int64_t step, const Trainer::Totals&) {
                                                 if (step == last) throw Interrupted{};
                                               });
                                         } catch (const Interrupted&) {
                                           return std::pair{std::vector<pdp::checkpoint::Tensor>{}, epochs};
                                         }
                                         return std::pair{trainer.parameters(), epochs};
                                       })
        .front();
  };
  for (const Way& way : {Way{"data", 3, strategy::DataParallel{}}, Way{"zero", 2, strategy::Zero{.stage = 3}},
                         Way{"pipeline", 2, strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 2}}}) {
    const auto expected = train(way, 4).parameters.front();
    CHECK(fit(way, 8).second == std::vector<int>{0});
    CHECK(fit(way, 8).second == std::vector<int>{0});  // from step 5
    CHECK(fit(way, 16).second == std::vector<int>{0, 1});
    const auto [parameters, epochs] = fit(way, -1);  // from step 15, in the third epoch
    CHECK(epochs == std::vector<int>{2, 3});
    REQUIRE(parameters.size() == expected.size());
    for (std::size_t t = 0; t < expected.size(); ++t) CHECK(parameters[t].values == expected[t].values);
    const auto found = pdp::checkpoint::checkpoints_in(folder / way.name);
    REQUIRE(found.size() == 2);
    CHECK(found[0].step == 20);
    CHECK(found[1].step == 24);
    CHECK(fs::read_symlink(folder / way.name / "latest") == "step-000024");
    CHECK(fit(way, -1).second.empty());  // nothing is left to do
  }
}

TEST_CASE("A training that goes back to an earlier checkpoint sets the later ones aside", "[checkpoint]") {
  const files::TemporaryFolder folder;
  train(ways().front(), 1, {}, folder / "run", 2);
  train(ways().front(), 1, {}, folder / "run", 5);
  const auto resumed = pdp::testing::ranks<Thread>(2, [&](Thread& world) {
    Trainer trainer{world, strategy::DataParallel{}, classifier, {.global_batch = 12, .seed = 5}};
    const bool found = trainer.resume(folder / "run/step-000002");
    trainer.fit(
        samples(), {.epochs = 1, .checkpoint = {.directory = folder / "run", .every_steps = 1, .keep = 1}}, [](const pdp::Epoch&) {},
        [&](std::int64_t step, const Trainer::Totals&) {
          if (step == 2) trainer.save(folder / "run", {{"note", "from a callback"}});
          if (step == 3) trainer.save(folder / "other");
        });
    return found ? 1 : 0;
  });
  CHECK(resumed == std::vector<int>{1, 1});
  const auto found = pdp::checkpoint::checkpoints_in(folder / "run");
  REQUIRE(found.size() == 1);
  CHECK(found.front().step == 6);
  CHECK(fs::exists(folder / "run/step-000005.aside"));
  CHECK(pdp::checkpoint::checkpoints_in(folder / "other").size() == 1);
  CHECK(fs::read_symlink(folder / "run/latest") == "step-000006");
}

TEST_CASE("A checkpoint after the last step of an epoch is one of its end", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const auto fit = [&](pdp::Index batch, int epochs) {
    return pdp::testing::ranks<Thread>(1,
                                       [&](Thread& world) {
                                         Trainer trainer{world, strategy::Single{}, classifier, {.global_batch = batch, .seed = 5}};
                                         std::vector<int> ended;
                                         trainer.fit(samples(),
                                                     {.epochs = epochs, .checkpoint = {.directory = folder / "run", .every_steps = 3}},
                                                     [&](const pdp::Epoch& epoch) { ended.push_back(epoch.number); });
                                         return ended;
                                       })
        .front();
  };
  CHECK(fit(12, 1) == std::vector<int>{0});  // 6 steps
  CHECK(fit(14, 2) == std::vector<int>{1});  // the first epoch is complete, so the batch may change
}

TEST_CASE("Wrong folders of checkpoints are errors", "[checkpoint]") {
  const files::TemporaryFolder folder;
  train(ways().front(), 1, {}, folder / "run", 2);
  const auto message = [&](const auto& call) {
    return pdp::testing::errors<Thread>(1,
                                        [&](Thread& world) {
                                          Trainer trainer{world, strategy::Single{}, classifier, {.global_batch = 12}};
                                          call(trainer);
                                        })
        .front()
        .what();
  };
  CHECK_THAT(message([](Trainer& trainer) { trainer.save(""); }), Contains("save() was given an empty path"));
  CHECK_THAT(message([&](Trainer& trainer) { trainer.save(folder / "run/step-000002"); }),
             Contains("step-000002: expected a folder for checkpoints, found a checkpoint"));
  files::write(folder / "file", "");
  CHECK_THAT(message([&](Trainer& trainer) { trainer.save(folder / "file"); }), Contains("file: cannot create the folder"));
  CHECK_THAT(message([&](Trainer& trainer) { trainer.fit(samples(), {.checkpoint = {.directory = folder / "run", .keep = -1}}); }),
             Contains("expected numbers of 0 or more"));
}

TEST_CASE("A complete checkpoint without its name gets it from the next job, and others are removed", "[checkpoint]") {
  const files::TemporaryFolder folder;
  train(ways().front(), 1, {}, folder / "run", 2);
  fs::rename(folder / "run/step-000002", folder / "run/.step-000002.new");
  fs::create_directory(folder / "run/.step-000004.new");
  fs::create_directory(folder / "run/.step-000001.old");
  train(ways().front(), 1, {}, folder / "run", 5);
  const auto found = pdp::checkpoint::checkpoints_in(folder / "run");
  REQUIRE(found.size() == 2);
  CHECK(found.front().step == 2);
  CHECK(!fs::exists(folder / "run/.step-000004.new"));
  CHECK(!fs::exists(folder / "run/.step-000001.old"));
}

TEST_CASE("A second job cannot write its checkpoints to the same folder", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const pdp::checkpoint::FolderLock other{folder / "run"};
  for (const auto& thrown : pdp::testing::errors<Thread>(2, [&](Thread& world) {
         Trainer trainer{world, strategy::DataParallel{}, classifier, {.global_batch = 12}};
         trainer.fit(samples(), {.checkpoint = {.directory = folder / "run"}}, [](const pdp::Epoch&) {});
       })) {
    CHECK(thrown.is<pdp::FileError>());
    CHECK_THAT(thrown.what(), Contains("run: another job, or a fit() of this one, writes its checkpoints to this folder"));
  }
}

TEST_CASE("A checkpoint from the middle of an epoch continues only with the same data and batches", "[checkpoint]") {
  const files::TemporaryFolder folder;
  train(ways().front(), 2, {}, folder / "run", 9);
  const auto refused = [&](pdp::Index batch, bool shuffle) {
    return pdp::testing::errors<Thread>(1,
                                        [&](Thread& world) {
                                          Trainer trainer{world, strategy::Single{}, classifier, {.global_batch = batch, .seed = 5}};
                                          trainer.load(folder / "run");
                                          trainer.fit(samples(), {.shuffle = shuffle}, [](const pdp::Epoch&) {});
                                        })
        .front()
        .what();
  };
  CHECK_THAT(refused(10, true), Contains("from the middle of an epoch with global_batch = 12, but here it is 10"));
  CHECK_THAT(refused(12, false), Contains("shuffle = true, but here it is false"));
}

}  // namespace resume_test
