#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/describe.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "checkpoint/small_training.hpp"
#include "data/files.hpp"

namespace asynchronous_test {

namespace fs = std::filesystem;
using namespace small_training;

namespace {

struct Interrupted {};

/// Trains for 4 epochs of 6 steps, and saves asynchronously after every third. Calls at_step(trainer, step) after each step. Returns the
/// parameters, or none if at_step throws Interrupted.
std::vector<pdp::checkpoint::Tensor> fit(const Way& way, const fs::path& folder,
                                         const std::function<void(Trainer&, std::int64_t)>& at_step = {}) {
  const pdp::CheckpointOptions checkpoint{.directory = folder, .every_steps = 3, .asynchronous = true, .keep = 2};
  return pdp::testing::ranks<Thread>(way.ranks,
                                     [&](Thread& world) {
                                       Trainer trainer{world, way.strategy, classifier, options};
                                       const Samples data = samples();
                                       try {
                                         trainer.fit(
                                             data, {.epochs = 4, .checkpoint = checkpoint}, [](const pdp::Epoch&) {},
                                             [&](std::int64_t step, const Trainer::Totals&) {
                                               if (at_step) at_step(trainer, step);
                                             });
                                       } catch (const Interrupted&) {
                                         return std::vector<pdp::checkpoint::Tensor>{};
                                       }
                                       return trainer.parameters();
                                     })
      .front();
}

const std::vector<Way>& three_ways() {
  static const std::vector<Way> all{{"data", 3, strategy::DataParallel{}},
                                    {"zero", 2, strategy::Zero{.stage = 3}},
                                    {"pipeline", 2, strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 2}}};
  return all;
}

}  // namespace

TEST_CASE("A checkpoint that is written during later steps has the state of its own step", "[checkpoint][background]") {
  for (const Way& way : three_ways()) {
    const files::TemporaryFolder folder;
    const auto expected = train(way, 4).parameters.front();
    CAPTURE(way.name);
    check_equal(fit(way, folder / "run"), expected);
    const auto found = pdp::checkpoint::checkpoints_in(folder / "run");
    REQUIRE(found.size() == 2);
    CHECK(found[0].step == 21);
    CHECK(found[1].step == 24);
    const pdp::checkpoint::PieceReader reader{found[0].path};
    reader.verify([](const std::string& damage) { FAIL(damage); });
    const auto described = pdp::describe(classifier, way.strategy, way.ranks, options);
    for (int rank = 0; rank < way.ranks; ++rank) {
      const auto& file = reader.manifest().files[static_cast<std::size_t>(rank)];
      CHECK(static_cast<pdp::Index>(file.bytes - file.header) <= described.ranks[static_cast<std::size_t>(rank)].checkpoint);
    }
    fs::remove_all(found[1].path);
    check_equal(fit(way, folder / "run"), expected);
  }
}

TEST_CASE("A training that is interrupted during an asynchronous save continues from a whole checkpoint", "[checkpoint][background]") {
  for (const Way& way : three_ways()) {
    const files::TemporaryFolder folder;
    const auto expected = train(way, 4).parameters.front();
    for (const std::int64_t last : {3, 6, 10, 15, 20}) {
      fit(way, folder / "run", [&](Trainer&, std::int64_t step) {
        if (step == last) throw Interrupted{};
      });
    }
    CAPTURE(way.name);
    check_equal(fit(way, folder / "run"), expected);
  }
}

TEST_CASE("A callback saves during an asynchronous save", "[checkpoint][background]") {
  const files::TemporaryFolder folder;
  fit(three_ways()[1], folder / "run", [&](Trainer& trainer, std::int64_t step) {
    if (step == 3) trainer.save(folder / "run", {{"note", "a text"}});
    if (step == 6) trainer.save(folder / "other");
  });
  const auto found = pdp::checkpoint::checkpoints_in(folder / "run");
  REQUIRE(found.size() == 2);
  for (const fs::path& path : {found[0].path, found[1].path, folder / "other/step-000007"}) {
    const pdp::checkpoint::PieceReader reader{path};
    reader.verify([](const std::string& damage) { FAIL(damage); });
    CHECK(reader.manifest().values.at("note") == pdp::checkpoint::Value{"a text"});
  }
}

TEST_CASE("An asynchronous save that fails is the same error on every rank of the fit", "[checkpoint][background]") {
  const Way& way = three_ways().front();
  const files::TemporaryFolder folder;
  const auto thrown = pdp::testing::errors<Thread>(way.ranks, [&](Thread& world) {
    Trainer trainer{world, way.strategy, classifier, options};
    trainer.fit(
        samples(), {.epochs = 4, .checkpoint = {.directory = folder / "run", .every_steps = 3, .asynchronous = true}},
        [](const pdp::Epoch&) {},
        [&](std::int64_t step, const Trainer::Totals&) {
          // The manifest cannot be written: rank 0 begins that after this call.
          if (step == 3 && world.rank() == 0) fs::rename(folder / "run", folder / "moved");
        });
  });
  REQUIRE(thrown.size() == 3);
  for (const auto& each : thrown) {
    CHECK(each.is<pdp::FileError>());
    CHECK(std::string{each.what()} == thrown.front().what());
  }
}

}  // namespace asynchronous_test
