#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multi_head_attention.hpp>
#include <pdp/nn/positions.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <cstdint>
#include <vector>

#include "catch.hpp"
#include "train/parity.hpp"
#include "train/ways.hpp"

/// A transformer, as PyTorch trains it; see tests/parity/make_gpt.py.
namespace gpt_test {

using pdp::Index, pdp::Shape, pdp::comm::Thread;

namespace {

constexpr Index positions = 12, vocabulary = 18, width = 16, batch = 8, steps = parity::steps;

/// The second block has keys that heads share, and rotary positions.
auto gpt(float dropout) {
  using namespace pdp::nn;
  const auto attention = [&](const AttentionOptions& options) {
    return Residual{Sequential{LayerNorm{width}, MultiHeadAttention{width, 4, options}, Dropout{dropout}}};
  };
  const Residual perceptron{Sequential{LayerNorm{width}, Linear{width, 4 * width}, Gelu{}, Linear{4 * width, width}}};
  return Sequential{Embedding{vocabulary, width},
                    LearnedPositions{positions, width},
                    attention({.causal = true}),
                    perceptron,
                    attention({.causal = true, .key_heads = 2, .rotary = 10000}),
                    perceptron,
                    LayerNorm{width},
                    Linear{width, vocabulary}};
}

/// Returns the tokens and targets of the script.
pdp::data::InMemory<std::int32_t, std::int32_t> samples(Index count) {
  std::vector<std::int32_t> x, y;
  for (Index i = 0; i < count * positions; ++i) {
    x.push_back(static_cast<std::int32_t>(i * i % 7919 % vocabulary));
    y.push_back(static_cast<std::int32_t>((x.back() + i % positions) % vocabulary));
  }
  return {Shape{positions}, x, y, Shape{positions}};
}

std::vector<double> losses(const pdp::strategy::AnyStrategy& strategy, int ranks) {
  return pdp::testing::ranks<Thread>(ranks,
                                     [&](Thread& world) {
                                       const pdp::Task task{gpt(0), pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.05f}};
                                       pdp::Trainer trainer{world, strategy, task, {.global_batch = batch, .input = Shape{positions}}};
                                       trainer.set_parameters(parity::initial_parameters(task.model), "the formula");
                                       std::vector<double> found;
                                       trainer.fit(
                                           samples(batch * steps), {.epochs = 1, .shuffle = false, .progress = false},
                                           [](const pdp::Epoch&) {},
                                           [&](std::int64_t, const auto& totals) { found.push_back(totals.mean_loss()); });
                                       return found;
                                     })
      .front();
}

}  // namespace

TEST_CASE("A transformer has PyTorch's losses for 100 steps under every strategy", "[train][parity]") {
  for (const auto& way : ways_test::ways()) {
    if (way.ranks == 3) continue;
    INFO(way.name << " on " << way.ranks << " ranks");
    parity::check_losses(losses(way.strategy, way.ranks), "gpt");
  }
  parity::check_losses(losses(pdp::strategy::Single{}, 1), "gpt");
}

TEST_CASE("A transformer with dropout has the losses of serial training under every strategy", "[train][gpt]") {
  const auto set = samples(46);  // the last batch is short
  const pdp::Task task{gpt(0.1f), pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.05f}};
  auto ways = ways_test::ways();
  using Schedule = pdp::strategy::OneForwardOneBackward;
  ways.push_back({"recomputing pipeline", 3, pdp::strategy::Pipeline<Schedule>{.micro_batches = 3, .recompute = true}});
  for (const auto& way : ways) {
    INFO(way.name << " on " << way.ranks << " ranks");
    const auto report = pdp::testing::serial_equivalence<Thread>(
        task, set, way.strategy, way.ranks, {.steps = 12, .global_batch = 12, .input = Shape{positions}, .strict_steps = 12});
    INFO(report.text());
    CHECK(report);
  }
}

}  // namespace gpt_test
