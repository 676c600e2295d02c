#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace damage_test {

namespace fs = std::filesystem;
namespace checkpoint = pdp::checkpoint;
namespace nn = pdp::nn;
using pdp::comm::Thread;

namespace {

constexpr nn::Sequential small{nn::Linear{3, 2}};

template <class Model, class Rule>
auto task(const Model& model, const Rule& rule) {
  return pdp::Task{model, pdp::loss::MeanSquaredError{}, rule};
}

/// Makes a step on each rank and saves a checkpoint. Returns its path.
fs::path save(const fs::path& folder, int ranks = 2) {
  return pdp::testing::ranks<Thread>(
             ranks,
             [&](Thread& world) {
               pdp::Trainer trainer{world, pdp::strategy::Zero{}, task(small, pdp::optim::Adam{}), {.global_batch = 8, .seed = 2}};
               trainer.step(std::vector<float>{1, 2, 3}, std::vector<float>{4, 5});
               return trainer.save(folder);
             })
      .front();
}

/// Loads a checkpoint into a training with one rank.
template <class Task>
void load_into(const Task& into, const fs::path& path) {
  pdp::testing::ranks<Thread>(1, [&](Thread& world) {
    pdp::Trainer trainer{world, pdp::strategy::Single{}, into, {.global_batch = 8}};
    trainer.load(path);
    return 0;
  });
}
void load(const fs::path& path) { load_into(task(small, pdp::optim::Adam{}), path); }

std::vector<std::string> files_of(const fs::path& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{path}) names.push_back(entry.path().filename().string());
  return names;
}

/// Returns the number of the checkpoint's damages that verify() finds. Also counts an error of the reader.
int damages(const fs::path& path) {
  int found = 0;
  try {
    checkpoint::PieceReader{path}.verify([&](const std::string&) { ++found; });
  } catch (const pdp::FileError&) {
    ++found;
  }
  return found;
}

/// Checks that loading finds one flipped bit, for every `stride`th bit of a checkpoint.
void check_flipped_bits(std::size_t stride) {
  const files::TemporaryFolder folder;
  const fs::path path = save(folder / "run");
  REQUIRE_NOTHROW(load(path));
  REQUIRE(files_of(path).size() == 3);
  for (const std::string& name : files_of(path)) {
    const std::string whole = files::read(path / name);
    for (std::size_t bit = 0; bit < 8 * whole.size(); bit += stride) {
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      files::write(path / name, damaged);
      CAPTURE(name, bit);
      REQUIRE_THROWS_AS(load(path), pdp::FileError);
      REQUIRE(damages(path) == 1);
    }
    files::write(path / name, whole);
  }
  CHECK(damages(path) == 0);
}

}  // namespace

TEST_CASE("Loading finds a flipped bit anywhere in a checkpoint", "[checkpoint]") { check_flipped_bits(PDP_TEST_SANITIZED ? 37 : 11); }

TEST_CASE("Loading finds every flipped bit of a checkpoint", "[checkpoint][.long]") { check_flipped_bits(1); }

TEST_CASE("Loading finds every truncation of a checkpoint's files, a missing and an extra file", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const fs::path path = save(folder / "run");
  for (const std::string& name : files_of(path)) {
    const std::string whole = files::read(path / name);
    for (std::size_t size = 0; size < whole.size(); size += size < 16 || size + 16 > whole.size() ? 1 : 13) {
      files::write(path / name, std::string_view{whole}.substr(0, size));
      CAPTURE(name, size);
      REQUIRE_THROWS_AS(load(path), pdp::FileError);
    }
    files::write(path / name, whole + '\n');
    CHECK_THROWS_AS(load(path), pdp::FileError);
    fs::remove(path / name);
    CHECK_THROWS_AS(load(path), pdp::FileError);
    files::write(path / name, whole);
  }
  files::write(path / "rank-00002.safetensors", files::read(path / "rank-00001.safetensors"));
  CHECK_THROWS_WITH(load(path), Contains("rank-00002.safetensors: expected only the 2 files that the manifest names"));
}

TEST_CASE("A damaged piece is reported with its file, tensor and offset on every rank", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const fs::path path = save(folder / "run");
  const checkpoint::Manifest manifest = checkpoint::decode(files::read(path / "manifest.json"), "manifest.json");
  const checkpoint::StoredPiece& piece = manifest.pieces.back();
  const std::string name = manifest.files[piece.file].name, words = manifest.tensors[piece.tensor].words();
  std::string bytes = files::read(path / name);
  bytes[piece.begin] = static_cast<char>(bytes[piece.begin] ^ 1);
  files::write(path / name, bytes);
  for (const auto& thrown : pdp::testing::errors<Thread>(3, [&](Thread& world) {
         pdp::Trainer trainer{world, pdp::strategy::Zero{}, task(small, pdp::optim::Adam{}), {.global_batch = 8}};
         trainer.load(folder / "run");
       })) {
    CAPTURE(thrown.what());
    CHECK(thrown.is<pdp::FileError>());
    CHECK_THAT(thrown.what(), Contains(pdp::text(name, ": ", words, " is damaged between the bytes ", piece.begin, " and ")));
  }
}

TEST_CASE("A checkpoint of another model, optimizer or precision is refused", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const fs::path path = save(folder / "run");
  const std::string other = "is a checkpoint of another model, optimizer or precision: ";
  CHECK_THROWS_WITH(load_into(task(nn::Sequential{nn::Linear{3, 4}}, pdp::optim::Adam{}), path),
                    Contains(other + "0.weight has the shape [2, 3] there, but [4, 3] here"));
  CHECK_THROWS_WITH(load_into(task(nn::Sequential{nn::Linear{3, 2}, nn::Linear{2, 2}}, pdp::optim::Adam{}), path),
                    Contains(other + "it has no 1.weight, which this training has"));
  CHECK_THROWS_WITH(load_into(task(nn::Sequential{nn::Linear{3, 2, false}}, pdp::optim::Adam{}), path),
                    Contains(other + "it has 0.bias of shape [2], which this training does not have"));
  CHECK_THROWS_WITH(load_into(task(small, pdp::optim::Sgd{.momentum = 0.9f}), path),
                    Contains(other + "it has no momentum_buffer of 0.weight, which this training has"));
  CHECK_THROWS_WITH(load_into(task(small, pdp::optim::Sgd{}), path), Contains("it has exp_avg of 0.weight"));
}

TEST_CASE("A manifest of a newer version is refused", "[checkpoint]") {
  checkpoint::Manifest manifest;
  std::string words = checkpoint::encode(manifest);
  words.replace(words.find("\"version\":1"), 11, "\"version\":3");
  CHECK_THROWS_WITH(checkpoint::decode(words, "run/manifest.json"),
                    Contains("run/manifest.json: expected a manifest of version 1 to 2, found version 3"));
}

TEST_CASE("A manifest keeps texts, whole numbers, and numbers that are not finite", "[checkpoint]") {
  checkpoint::Manifest manifest;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  manifest.values = {{"text", "a \"text\"\n"},    {"best", infinity}, {"worst", -infinity}, {"none", std::nan("")},
                     {"whole", std::int64_t{-3}}, {"one", 1.0},       {"third", 1.0 / 3}};
  manifest.position.epoch_loss = std::nan("");
  manifest.position.seed = std::numeric_limits<std::uint64_t>::max();
  manifest.position.epoch_weight = 12.5;
  const auto read = checkpoint::decode(checkpoint::encode(manifest), "manifest.json");
  CHECK(std::isnan(std::get<double>(read.values.at("none"))));
  CHECK(std::isnan(read.position.epoch_loss));
  CHECK(read.position.seed == manifest.position.seed);
  CHECK(read.position.epoch_weight == 12.5);
  for (const auto& [name, value] : manifest.values)
    if (name != "none") CHECK((read.values.at(name) == value));
  manifest.values["bad"] = std::string{"\xff"};
  CHECK_THROWS_WITH(checkpoint::encode(manifest), Contains("in UTF-8"));
}

TEST_CASE("A folder without a checkpoint is an error that says so", "[checkpoint]") {
  const files::TemporaryFolder folder;
  CHECK_THROWS_WITH(load(folder.path()), Contains("expected a checkpoint") && Contains("found neither"));
  CHECK_THROWS_WITH(load(folder / "nowhere"), Contains("nowhere: expected a checkpoint"));
}

}  // namespace damage_test
