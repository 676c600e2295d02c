#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/checkpoint/state.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "checkpoint/small_training.hpp"
#include "data/files.hpp"

namespace resume_test {

namespace fs = std::filesystem;
using namespace small_training;

/// Checks that training continues from a checkpoint of step 9 with the losses of an uninterrupted run of a single rank.
static void check_continues(const Way& from, const fs::path& saved, const Way& to, const Run& uninterrupted) {
  const Run resumed = train(to, 4, saved);
  REQUIRE(resumed.losses.size() == 21);
  for (std::size_t step = 0; step < 20; ++step) {
    CAPTURE(from.name, from.ranks, to.name, to.ranks, step);
    REQUIRE_THAT(resumed.losses[step], WithinRel(uninterrupted.losses[9 + step], 1e-5));
  }
}

TEST_CASE("A checkpoint of any strategy continues under another with the losses of an uninterrupted run", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const std::vector<Way> all = ways();
  const Run uninterrupted = train(all.front(), 5);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const fs::path saved = folder / std::to_string(i);
    train(all[i], 2, {}, saved, 9);
    check_continues(all[i], saved, all[(7 * i + 3) % all.size()], uninterrupted);
  }
}

TEST_CASE("A checkpoint of any strategy continues under every other with the losses of an uninterrupted run", "[.long]") {
  const files::TemporaryFolder folder;
  const std::vector<Way> all = ways();
  const Run uninterrupted = train(all.front(), 5);
  for (const Way& from : all) {
    const fs::path saved = folder / (from.name + std::to_string(from.ranks));
    train(from, 2, {}, saved, 9);
    for (const Way& to : all) check_continues(from, saved, to, uninterrupted);
  }
}

TEST_CASE("A training with the same strategy continues to the bit", "[checkpoint]") {
  const files::TemporaryFolder folder;
  for (const Way& way : ways()) {
    const Run uninterrupted = train(way, 3, {}, folder / "run", 8);
    const Run resumed = train(way, 2, folder / "run");
    CAPTURE(way.name, way.ranks);
    REQUIRE(resumed.losses == std::vector<double>{uninterrupted.losses.begin() + 8, uninterrupted.losses.end()});
    check_equal(resumed.parameters.front(), uninterrupted.parameters.front());
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
                                         Trainer trainer{world, way.strategy, classifier, options};
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
    check_equal(parameters, expected);
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
    Trainer trainer{world, strategy::DataParallel{}, classifier, options};
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

TEST_CASE("A fit that resumes has the values that the program had given to the earlier one", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const auto fit = [&](int epochs, bool begins) {
    return pdp::testing::ranks<Thread>(2,
                                       [&](Thread& world) {
                                         Trainer trainer{world, strategy::DataParallel{}, classifier, options};
                                         if (begins) trainer.values() = {{"best", 0.25}, {"tries", std::int64_t{3}}};
                                         trainer.fit(samples(), {.epochs = epochs, .checkpoint = {.directory = folder / "run"}},
                                                     [](const pdp::Epoch&) {});
                                         trainer.values()["note"] = "after the fit";
                                         return trainer.values();
                                       })
        .back();
  };
  fit(1, true);
  CHECK(fit(2, false) == pdp::checkpoint::Values{{"best", 0.25}, {"tries", std::int64_t{3}}, {"note", "after the fit"}});
}

TEST_CASE("Ranks that load what another number of ranks has saved read few bytes that they do not need", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const pdp::Task wide{nn::Sequential{nn::Linear{512, 1024}, nn::Linear{1024, 1024}}, pdp::loss::MeanSquaredError{}, pdp::optim::Adam{}};
  const strategy::AnyStrategy zero{strategy::Zero{.stage = 3}};
  pdp::testing::ranks<Thread>(2, [&](Thread& world) { return pdp::Trainer{world, zero, wide, options}.save(folder / "run").string(); });
  const auto read = pdp::testing::ranks<Thread>(3, [&](Thread& world) {
    pdp::Trainer trainer{world, zero, wide, options};
    pdp::checkpoint::Copies copies;
    double needed = 0;
    for (const auto& part : pdp::checkpoint::own_parts(trainer.engine().state(), copies, false))
      needed += static_cast<double>(part.bytes.size());
    const pdp::checkpoint::PieceReader reader{folder / "run/step-000000"};
    pdp::checkpoint::read_state(trainer.engine().state(), reader);
    return static_cast<double>(reader.bytes_read()) / needed;
  });
  for (const double ratio : read) {
    CHECK(ratio >= 1);
    CHECK(ratio < 1.1);
  }
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
