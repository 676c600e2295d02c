#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/predictor_of.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "checkpoint/small_training.hpp"
#include "data/files.hpp"

namespace predictor_test {

namespace fs = std::filesystem;
namespace checkpoint = pdp::checkpoint;
namespace nn = pdp::nn;
using pdp::Index, pdp::Predictor, pdp::PredictorOptions;
using pdp::testing::same_bits, pdp::testing::relative_difference;

namespace {

constexpr nn::Sequential small{nn::Linear{3, 5}, nn::Relu{}, nn::Linear{5, 2}};
using Small = Predictor<std::remove_const_t<decltype(small)>>;
static_assert(std::move_constructible<Small> && !std::copy_constructible<Small>);

/// Returns tensors with the names and shapes of a model's parameters, and values that depend on the seed.
template <class Model>
std::vector<checkpoint::Tensor> tensors_of(const Model& model, int seed = 1) {
  std::vector<checkpoint::Tensor> tensors;
  for (const nn::LayerParameter& each : nn::parameters_of(model)) {
    tensors.push_back(checkpoint::tensor_of(each.parameter));
    tensors.back().values = pdp::testing::normal(tensors.back().values.size(), seed++);
  }
  return tensors;
}

/// Returns the message of the error that f throws.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

/// Returns 29 rows of samples for small_training.
std::vector<float> rows() { return pdp::testing::normal(29 * 6, 8); }

}  // namespace

TEST_CASE("Predictor gives bitwise the outputs of a trainer with any strategy that divides no layers", "[inference]") {
  const auto data = small_training::samples();
  const std::vector<float> x = rows();
  std::mutex mutex;
  for (const small_training::Way& way : small_training::ways()) {
    const files::TemporaryFolder folder;
    const bool divides = way.name == "tensor" || (way.name == "hybrid" && way.ranks > 3);
    pdp::testing::ranks<pdp::comm::Thread>(way.ranks, [&](pdp::comm::Thread& world) {
      small_training::Trainer trainer{world, way.strategy, small_training::classifier, small_training::options};
      trainer.fit(data, {.epochs = 1}, [](const pdp::Epoch&) {});
      const std::vector<float> expected = trainer.predict(x);
      const auto tensors = trainer.parameters();
      const Predictor predictor = predictor_of(trainer);
      trainer.save(folder.path());
      const PredictorOptions options{.rows = predictor.rows()};
      std::vector<std::vector<float>> found{predictor.predict(x), Predictor{small_training::model, folder.path(), options}.predict(x)};
      if (world.rank() == 0) found.push_back(Predictor{small_training::model, tensors, "rank 0", options}.predict(x));
      const std::lock_guard lock{mutex};  // Catch2 is for one thread
      CAPTURE(way.name, way.ranks, world.rank());
      for (const std::vector<float>& each : found) {
        if (divides)
          CHECK(relative_difference(each, expected) < 1e-5);
        else
          CHECK(same_bits(each, expected));
      }
      return 0;
    });
  }
}

TEST_CASE("Predictor computes in double like a trainer, and its outputs hold after the trainer goes on", "[inference]") {
  const std::vector<double> x = pdp::testing::normal<double>(7 * 3, 2);
  constexpr pdp::Task task{small, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
  pdp::comm::Self world;
  pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 7, .seed = 3}, pdp::Float64{}};
  const std::vector<std::int32_t> targets{0, 1, 1, 0, 1, 0, 0};
  trainer.step(x, targets);
  const Predictor predictor = predictor_of(trainer);
  const std::vector<double> before = trainer.predict(x);
  CHECK(same_bits(predictor.predict(x), before));
  const std::vector<float> floats(x.begin(), x.end());
  CHECK(same_bits(predictor.predict(floats), predictor.predict(std::vector<double>(floats.begin(), floats.end()))));
  trainer.step(x, targets);
  CHECK(same_bits(predictor.predict(x), before));
  CHECK_FALSE(same_bits(trainer.predict(x), before));

  const files::TemporaryFolder folder;
  trainer.save(folder.path());
  CHECK(
      same_bits(Predictor<std::remove_const_t<decltype(small)>, double>{small, folder.path(), {.rows = 7}}.predict(x), trainer.predict(x)));
  CHECK_THAT(message_of<pdp::FileError>([&] {
               Small{small, folder.path()};
             }),
             Contains("is a checkpoint of another model or precision: 0.weight has elements of type F64 there, but F32 here"));
}

TEST_CASE("Predictor computes any number of rows in pieces", "[inference]") {
  const auto model =
      nn::Sequential{nn::Flatten{}, nn::Linear{6, 4}, nn::Repeat{2, nn::Residual{nn::Sequential{nn::Linear{4, 4}, nn::Tanh{}}}}, nn::Relu{},
                     nn::Linear{4, 3}};
  const auto tensors = tensors_of(model);
  const std::vector<float> x = pdp::testing::normal(65 * 6, 4);
  const std::vector<float> expected = Predictor{model, tensors, "a test", {.rows = 65}}.predict(x);
  REQUIRE(expected.size() == 65 * 3);
  for (const Index piece : {1, 2, 3, 8, 64, 100}) {
    const Predictor predictor{model, tensors, "a test", {.rows = piece}};
    for (const std::size_t count : std::initializer_list<std::size_t>{0, 1, 2, 63, 64, 65}) {
      CAPTURE(piece, count);
      const std::vector<float> found = predictor.predict(std::span{x}.first(count * 6));
      CHECK(relative_difference(found, std::span{expected}.first(count * 3)) < 1e-5);
    }
  }
}

TEST_CASE("Predictor takes models whose widths are known at run time, and views without layers behind them", "[inference]") {
  const nn::MultilayerPerceptron<nn::Tanh> perceptron{{2, 8, 8, 1}};
  CHECK(Predictor{perceptron, tensors_of(perceptron), "a test"}.predict(std::vector<float>{1, 2, 3, 4}).size() == 2);
  const Predictor same{nn::Flatten{}, {}, "a test", {.input = pdp::Shape{2, 2}}};
  CHECK(same.predict(std::vector<float>{1, 2, 3, 4}) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("Predictor reads a safetensors file, and moves", "[inference]") {
  const files::TemporaryFolder folder;
  const auto tensors = tensors_of(small);
  const std::vector<float> x{1, 2, 3};
  checkpoint::save(folder / "small.safetensors", tensors);
  Predictor predictor{small, checkpoint::load(folder / "small.safetensors"), "small.safetensors"};
  const std::vector<float> outputs = predictor.predict(x);
  const Predictor moved = std::move(predictor);
  CHECK(moved.predict(x) == outputs);
  CHECK(moved.input_elements() == 3);
  CHECK(moved.output_elements() == 2);
  CHECK(moved.rows() == PredictorOptions::default_rows);
}

TEST_CASE("Predictor reports wrong sizes of input and output", "[inference]") {
  const Predictor predictor{small, tensors_of(small), "a test"};
  CHECK(message_of<pdp::ShapeError>([&] { static_cast<void>(predictor.predict(std::vector<float>(7))); }) ==
        "the input has 7 values, which is not a multiple of the sample size 3; give whole samples, one after another");
  std::vector<float> out(5);
  CHECK(message_of<pdp::ShapeError>([&] { predictor.predict(std::vector<float>(6), out); }) ==
        "the memory for outputs has 5 values, but 2 rows have 4 outputs; give memory of that size");
  CHECK_THROWS_AS(predictor.predict(std::vector<float>{}, out), pdp::ShapeError);
}

TEST_CASE("Predictor reports options that are out of range", "[inference]") {
  const auto tensors = tensors_of(small);
  const auto message = [&](const PredictorOptions& options) {
    return message_of<pdp::ConfigError>([&] { Predictor{small, tensors, "a test", options}; });
  };
  CHECK(message({.rows = -1}) == "rows = -1 and callers = 1 were given; a Predictor takes 0 rows or more, and 1 caller or more");
  CHECK_THAT(message({.callers = 0}), Contains("callers = 0"));
  CHECK_THAT(message({.threads = 0}), Contains("thread"));
  CHECK_THAT(message_of<pdp::ConfigError>([&] { Predictor{nn::Relu{}, {}, "a test"}; }), Contains("the predictor needs theirs"));
  CHECK_THROWS_AS((Predictor{small, tensors, "a test", {.input = pdp::Shape{4}}}), pdp::ShapeError);
}

TEST_CASE("Predictor refuses the parameters of another model", "[inference]") {
  constexpr nn::Sequential wider{nn::Linear{3, 6}, nn::Relu{}, nn::Linear{6, 2}};
  CHECK_THAT(
      message_of<pdp::FileError>([&] {
        Predictor{wider, tensors_of(small), "a.safetensors"};
      }),
      Contains("a.safetensors holds the parameters of another model: 0.weight has shape [5, 3] in the file, but [6, 3] in this model"));
  auto fewer = tensors_of(small);
  fewer.pop_back();
  CHECK_THAT(message_of<pdp::FileError>([&] { Predictor{small, fewer, "a.safetensors"}; }), Contains("has no such tensor"));

  const files::TemporaryFolder folder;
  small_training::train(small_training::ways()[1], 1, {}, folder.path(), 3);
  const std::string other = "is a checkpoint of another model or precision: ";
  CHECK_THAT(message_of<pdp::FileError>([&] {
               Predictor{small, folder.path()};
             }),
             Contains(other + "0.weight has the shape [24, 6] there, but [5, 3] here. Use the checkpoint of this model."));
  CHECK_THAT(message_of<pdp::FileError>([&] {
               Predictor{nn::Linear{24, 24}, folder.path()};
             }),
             Contains(other + "it has no weight, which this model has"));
}

TEST_CASE("Predictor finds a damaged file and a missing checkpoint", "[inference]") {
  const files::TemporaryFolder folder;
  small_training::train(small_training::ways()[1], 1, {}, folder / "run", 3);
  const fs::path path = checkpoint::find_checkpoint(folder / "run");
  CHECK_NOTHROW(Predictor{small_training::model, path});
  const checkpoint::Manifest manifest = checkpoint::decode(files::read(path / "manifest.json"), "manifest.json");
  const auto& piece = *std::ranges::find_if(
      manifest.pieces, [&](const checkpoint::StoredPiece& each) { return manifest.tensors[each.tensor].name == "2.weight"; });
  for (const auto& [name, at] : std::vector<std::pair<std::string, std::size_t>>{{"manifest.json", 100},
                                                                                 {"rank-00000.safetensors", 9},  // in the header
                                                                                 {"rank-00000.safetensors", piece.begin}}) {
    const std::string whole = files::read(path / name);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    files::write(path / name, damaged);
    CAPTURE(name, at);
    CHECK_THROWS_AS((Predictor{small_training::model, path}), pdp::FileError);
    files::write(path / name, whole);
  }
  CHECK_NOTHROW(Predictor{small_training::model, path});
  CHECK_THAT(message_of<pdp::FileError>([&] { Predictor{small, folder / "nothing"}; }), Contains("expected a checkpoint"));
  files::write(folder / "cut.safetensors", "abc");
  CHECK_THROWS_AS(checkpoint::load(folder / "cut.safetensors"), pdp::FileError);
}

}  // namespace predictor_test
