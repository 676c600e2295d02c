#include <pdp/checkpoint/interchange.hpp>
#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/data/safetensors_classification.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

/// The exchange of optimizer state with PyTorch; see tests/parity/make_toy_mlp_adam.py.
namespace torch_test {

using pdp::comm::Thread;
using pdp::strategy::AnyStrategy;

namespace {

constexpr std::int64_t steps = 20;  // before and after the exchange

std::string recorded(const std::string& name) { return std::string{PDP_TEST_PARITY} + "/" + name; }

/// Returns PyTorch's recorded losses. Column 1: from its own state; column 2: from that of pdp.
std::vector<double> losses_of_torch(std::size_t column) {
  std::ifstream lines{recorded("toy_mlp_adam_losses.csv")};
  std::string line;
  std::getline(lines, line);
  std::vector<double> found;
  while (std::getline(lines, line)) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < column; ++i) at = line.find(',', at) + 1;
    found.push_back(std::stod(line.substr(at)));
  }
  return found;
}

/// Makes 20 steps on `ranks` ranks, which give the same rows or shares of them. begin(trainer) and end(trainer) run before and after.
template <class Begin, class End>
std::vector<double> train(int ranks, const AnyStrategy& strategy, const Begin& begin, const End& end) {
  return pdp::testing::ranks<Thread>(ranks,
                                     [&](Thread& world) {
                                       const auto set = pdp::data::read_classification(recorded("toy_mlp.safetensors"), 0);
                                       const pdp::Task task{
                                           pdp::nn::MultilayerPerceptron{{24, 16, 16, 16, 5}, pdp::nn::Tanh{}, {.bias = false}},
                                           pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 0.01f}};
                                       constexpr pdp::Index batch = 16;
                                       pdp::Trainer trainer{world, strategy, task, {.global_batch = batch}};
                                       begin(trainer);
                                       std::vector<double> losses;
                                       const pdp::data::Rows share = pdp::data::shard_rows(batch, trainer.share());
                                       std::vector<pdp::Index> which(static_cast<std::size_t>(share.size()));
                                       std::vector<float> x(which.size() * 24);
                                       std::vector<std::int32_t> y(which.size());
                                       const std::int64_t first = trainer.steps();
                                       for (std::int64_t step = first; step < first + steps; ++step) {
                                         std::iota(which.begin(), which.end(), step % (set.train.size() / batch) * batch + share.first);
                                         set.train.gather(which, x, y);
                                         losses.push_back(trainer.step(x, y, batch).mean_loss());
                                       }
                                       end(trainer);
                                       return losses;
                                     })
      .front();
}

const auto nothing = [](auto&) {};
const auto from_init = [](auto& trainer) {
  trainer.set_parameters(pdp::checkpoint::load(recorded("toy_mlp_init.safetensors")), "toy_mlp_init.safetensors");
};

void check(const std::vector<double>& own, const std::vector<double>& torch) {
  REQUIRE(torch.size() == steps);
  REQUIRE(own.size() == torch.size());
  for (std::size_t step = 0; step < own.size(); ++step) {
    CAPTURE(step);
    CHECK_THAT(own[step], WithinRel(torch[step], 1e-4));
  }
}

}  // namespace

TEST_CASE("A training continues from PyTorch's parameters and Adam state with PyTorch's losses", "[checkpoint][parity]") {
  const files::TemporaryFolder folder;
  pdp::checkpoint::import_checkpoint(recorded("toy_mlp_adam.safetensors"), folder / "run");
  const auto load = [&](auto& trainer) {
    trainer.load(folder / "run");
    if (trainer.steps() != steps) throw pdp::Error{"the steps of the other training are not counted"};
  };
  check(train(1, pdp::strategy::Single{}, load, nothing), losses_of_torch(1));
  check(train(3, pdp::strategy::Zero{.stage = 3}, load, nothing), losses_of_torch(1));
  check(train(2, pdp::strategy::TensorParallel{}, load, nothing), losses_of_torch(1));
}

TEST_CASE("PyTorch continues from an exported checkpoint with the losses of the training itself", "[checkpoint][parity]") {
  const files::TemporaryFolder folder;
  train(2, pdp::strategy::Zero{.stage = 1}, from_init, [&](auto& trainer) { trainer.save(folder / "run"); });
  const auto load = [&](auto& trainer) { trainer.load(folder / "run"); };
  check(train(1, pdp::strategy::Single{}, load, nothing), losses_of_torch(2));

  // The exported file has the values that PyTorch has read.
  pdp::checkpoint::export_checkpoint(folder / "run", folder / "exported.safetensors");
  const auto own = pdp::checkpoint::load(folder / "exported.safetensors");
  const auto torch = pdp::checkpoint::load(recorded("toy_mlp_adam.safetensors"));
  REQUIRE(own.size() == torch.size());
  for (const auto& tensor : own) {
    const auto same = std::ranges::find(torch, tensor.name, &pdp::checkpoint::Tensor::name);
    REQUIRE(same != torch.end());
    REQUIRE(same->shape == tensor.shape);
    for (std::size_t i = 0; i < tensor.values.size(); ++i) REQUIRE(std::abs(tensor.values[i] - same->values[i]) < 1e-5f);
  }
}

TEST_CASE("Writes the state that make_toy_mlp_adam.py reads", "[.parity]") {
  const char* file = std::getenv("PDP_PARITY_EXPORT");
  REQUIRE(file != nullptr);
  const files::TemporaryFolder folder;
  train(1, pdp::strategy::Single{}, from_init, [&](auto& trainer) { trainer.save(folder / "run"); });
  pdp::checkpoint::export_checkpoint(folder / "run", file);
  CHECK(std::filesystem::exists(file));
}

}  // namespace torch_test
