#include <pdp/checkpoint/interchange.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/random.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multi_head_attention.hpp>
#include <pdp/nn/reshape.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

/// Checkpoints of layers that are divided by heads and by channels, whose files have another order of columns, or more dimensions.
namespace divided_checkpoint_test {

namespace strategy = pdp::strategy;
using pdp::Index, pdp::Shape, pdp::comm::Thread;
using Tensors = std::vector<pdp::checkpoint::Tensor>;

namespace {

auto task() {
  using namespace pdp::nn;
  const Residual convolutions{Sequential{Conv2d{2, 8, 3, {.padding = 1}}, BatchNorm{8}, Relu{}, Conv2d{8, 2, {1, 3}, {.padding = {0, 1}}}}};
  return pdp::Task{Sequential{convolutions, Reshape{3, 16}, Residual{MultiHeadAttention{16, 8, {.key_heads = 4}}}, Flatten{}, Linear{48, 8},
                              Tanh{}, Linear{8, 3}},
                   pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.05f, .momentum = 0.9f}};
}

struct Way {
  int ranks;
  strategy::AnyStrategy strategy;
};
std::vector<Way> ways() {
  using Hybrid = strategy::Hybrid<strategy::OneForwardOneBackward>;
  return {{1, strategy::Single{}},
          {3, strategy::Zero{.stage = 3}},
          {2, strategy::TensorParallel{}},
          {4, strategy::TensorParallel{}},
          {8, Hybrid{.mesh = {.data = 2, .pipeline = 2, .tensor = 2}}}};
}

/// Trains for an epoch, from a checkpoint if one is given, and saves another one if that is given. Returns the parameters.
Tensors train(const Way& way, const std::filesystem::path& from, const std::filesystem::path& to = {}) {
  const std::vector<float> x = pdp::testing::normal(12 * 48, 1);
  const std::vector<std::int32_t> y{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  const pdp::data::InMemory<std::int32_t> set{Shape{2, 4, 6}, x, y};
  const auto run = [&](Thread& world) {
    pdp::Trainer trainer{world, way.strategy, task(), {.global_batch = 6, .seed = 3, .input = Shape{2, 4, 6}}};
    if (!from.empty()) trainer.load(from);
    trainer.fit(set, {.epochs = 1, .shuffle = false, .progress = false}, [](const pdp::Epoch&) {});
    if (!to.empty()) trainer.save(to);
    return trainer.parameters();
  };
  return pdp::testing::ranks<Thread>(way.ranks, run).front();
}

void check_close(const Tensors& found, const Tensors& expected) {
  REQUIRE(found.size() == expected.size());
  for (const auto& tensor : expected) {
    INFO(tensor.name);
    const auto same = std::ranges::find(found, tensor.name, &pdp::checkpoint::Tensor::name);
    REQUIRE(same != found.end());
    CHECK(same->shape == tensor.shape);
    REQUIRE(same->values.size() == tensor.values.size());
    float largest = 0;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) largest = std::max(largest, std::abs(same->values[i] - tensor.values[i]));
    CHECK(largest < 2e-4f);
  }
}

}  // namespace

TEST_CASE("Layers divided by heads and channels continue from a checkpoint of any other division", "[checkpoint][tensor]") {
  const files::TemporaryFolder folder;
  std::vector<std::string> saved;
  for (const Way& way : ways()) {
    saved.push_back("run-" + std::to_string(saved.size()));
    train(way, {}, folder / saved.back());
  }
  const Tensors expected = train({1, strategy::Single{}}, folder / saved.front());
  for (const std::string& each : saved)
    for (const Way& way : ways()) {
      INFO("from " << each << " to " << way.ranks << " ranks");
      check_close(train(way, folder / each), expected);
    }
}

TEST_CASE("Exported parameters of attention and convolutions have PyTorch's order and shapes", "[checkpoint][tensor]") {
  const files::TemporaryFolder folder;
  for (const Way& way : {ways()[0], ways()[3]}) {
    INFO(way.ranks << " ranks");
    const std::string run = "run-" + std::to_string(way.ranks);
    const Tensors expected = train(way, {}, folder / run);
    pdp::checkpoint::export_checkpoint(folder / run, folder / "exported.safetensors");
    Tensors parameters;
    for (const auto& tensor : pdp::checkpoint::load(folder / "exported.safetensors"))
      if (!tensor.name.starts_with("optimizer.")) parameters.push_back(tensor);
    check_close(parameters, expected);
    // The optimizer's state returns to the same elements.
    pdp::checkpoint::import_checkpoint(folder / "exported.safetensors", folder / (run + "-imported"));
    const Tensors continued = train({1, strategy::Single{}}, folder / run);
    check_close(train({1, strategy::Single{}}, folder / (run + "-imported")), continued);
    check_close(train({4, strategy::TensorParallel{}}, folder / (run + "-imported")), continued);
  }
}

TEST_CASE("A stored tensor finds the places of all elements in PyTorch's tensor, and back", "[checkpoint]") {
  for (const bool transposed : {false, true})
    for (const bool is_vector : {false, true}) {
      const Index cols = is_vector ? 1 : 24, rows = is_vector ? 24 : 5;
      const pdp::checkpoint::StoredTensor tensor{"w", "", "F32", rows, cols, is_vector, transposed, {3, 4, 2}, {}};
      std::vector<char> seen(pdp::as_size(rows * cols));
      for (Index row = 0; row < rows; ++row)
        for (Index col = 0; col < cols; ++col) {
          const Index element = tensor.file_element(row, col);
          REQUIRE(tensor.place_of(element) == std::pair{row, col});
          seen.at(pdp::as_size(element)) = 1;
        }
      CHECK(std::ranges::count(seen, 1) == rows * cols);
    }
}

}  // namespace divided_checkpoint_test
