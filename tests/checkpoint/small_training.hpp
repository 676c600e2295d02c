#pragma once

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/parameters.hpp>
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

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"

/// A small training that the tests of checkpoints interrupt and continue.
namespace small_training {

namespace nn = pdp::nn;
namespace strategy = pdp::strategy;
using pdp::comm::Thread;
using Samples = pdp::data::InMemory<std::int32_t>;

// Every width is a multiple of 2, 3, 4 and 8, and there are layers for a pipeline of 8 ranks.
constexpr nn::Sequential model{nn::Linear{6, 24},  nn::Tanh{},         nn::Linear{24, 24}, nn::Tanh{},         nn::Linear{24, 24},
                               nn::Tanh{},         nn::Linear{24, 24}, nn::Tanh{},         nn::Linear{24, 24}, nn::Tanh{},
                               nn::Linear{24, 24}, nn::Tanh{},         nn::Linear{24, 24}, nn::Tanh{},         nn::Linear{24, 3}};
constexpr pdp::Task classifier{model, pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 0.003f},
                               pdp::optim::Linear{.steps = 100, .to = 0.1f}};
using Trainer = pdp::Trainer<Thread, strategy::AnyStrategy, std::remove_const_t<decltype(classifier)>>;
inline constexpr pdp::TrainerOptions options{.global_batch = 12, .seed = 5};

inline Samples samples() {
  constexpr std::size_t count = 70;  // 6 batches an epoch, the last one of 10 rows
  const auto x = pdp::testing::normal(count * 6, 3);
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 6) classes.push_back(row[0] > 0 ? 2 : row[1] > 0 ? 1 : 0);
  return {pdp::Shape{6}, x, classes};
}

/// A strategy and a number of ranks.
struct Way {
  std::string name;
  int ranks;
  strategy::AnyStrategy strategy;
};

inline std::vector<Way> ways() {
  std::vector<Way> all{{"single", 1, strategy::Single{}}};
  for (const int ranks : {1, 2, 3, 4, 8}) {
    all.push_back({"data", ranks, strategy::DataParallel{}});
    for (const int stage : {1, 2, 3}) all.push_back({"zero " + std::to_string(stage), ranks, strategy::Zero{.stage = stage}});
    all.push_back({"tensor", ranks, strategy::TensorParallel{}});
    all.push_back({"pipeline", ranks, strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 3}});
    const strategy::Mesh mesh = ranks == 8   ? strategy::Mesh{.data = 2, .pipeline = 2, .tensor = 2}
                                : ranks == 4 ? strategy::Mesh{.pipeline = 2, .tensor = 2}
                                             : strategy::Mesh{.data = ranks};
    all.push_back({"hybrid", ranks, strategy::Hybrid<strategy::OneForwardOneBackward>{.mesh = mesh, .micro_batches = 2}});
  }
  return all;
}

struct Run {
  std::vector<double> losses;
  std::vector<std::vector<pdp::checkpoint::Tensor>> parameters;
  std::vector<pdp::Epoch> epochs;
};

/// Trains for some epochs, from a checkpoint if `from` is given. Saves one to `to` after step `save_at`, if that is given.
inline Run train(const Way& way, int epochs, const std::filesystem::path& from = {}, const std::filesystem::path& to = {},
                 std::int64_t save_at = 0) {
  const Samples data = samples();
  const auto run = [&](Thread& world) {
    Trainer trainer{world, way.strategy, classifier, options};
    if (!from.empty()) trainer.load(from);
    Run made;
    trainer.fit(
        data, {.epochs = epochs}, [&](const pdp::Epoch& epoch) { made.epochs.push_back(epoch); },
        [&](std::int64_t step, const Trainer::Totals& totals) {
          made.losses.push_back(totals.mean_loss());
          if (step + 1 == save_at) trainer.save(to, {{"note", "a text"}, {"number", std::int64_t{7}}, {"ratio", 0.1}});
        });
    made.parameters.push_back(trainer.parameters());
    return made;
  };
  return pdp::testing::ranks<Thread>(way.ranks, run).front();
}

inline void check_equal(const std::vector<pdp::checkpoint::Tensor>& found, const std::vector<pdp::checkpoint::Tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t t = 0; t < found.size(); ++t) CHECK(found[t].values == expected[t].values);
}

}  // namespace small_training
