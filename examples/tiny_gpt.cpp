// Trains a transformer that predicts the next character of a text, then writes
// a text of its own. The last line is the number of bits that a character of
// the unseen last tenth of the text costs:
//
//   tiny_gpt --ranks 2 --steps 500 --generate 200

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <pdp/data/gzip.hpp>
#include <pdp/data/next_tokens.hpp>
#include <pdp/pdp.hpp>

#include "common/command_line.hpp"
#include "common/run.hpp"

using pdp::Index;
using Strategy = pdp::strategy::DataParallel;

namespace {

// [model]
using namespace pdp::nn;

constexpr Index width = 128, heads = 4, positions = 128, vocabulary = 128;  // ASCII characters are the tokens

constexpr Sequential block{Residual{Sequential{LayerNorm{width}, MultiHeadAttention{width, heads, {.causal = true}}}},
                           Residual{Sequential{LayerNorm{width}, Linear{width, 4 * width}, Gelu{}, Linear{4 * width, width}}}};

constexpr Sequential gpt{Embedding{vocabulary, width, normal(0.02)}, LearnedPositions{positions, width, normal(0.02)}, Repeat{4, block},
                         LayerNorm{width}, Linear{width, vocabulary}};
// [model]

struct Flags {
  pdp::launch::Options launch;
  std::int64_t steps = 500;
  Index generate = 200, batch_size = 16;
  std::uint64_t seed = 0;
  std::string data = PDP_EXAMPLE_DATA "/king_james/genesis_to_ruth.txt.gz";
};

Flags parse(int argc, char** argv) {
  Flags flags;
  examples::CommandLine line{argc, argv, "Trains a transformer on the characters of a text."};
  line.ranks(flags.launch);
  line.number("--steps", flags.steps, std::int64_t{1}, std::int64_t{1'000'000'000}, "steps");
  line.number("--generate", flags.generate, Index{0}, Index{1'000'000}, "characters to write after the training");
  line.number("--batch-size", flags.batch_size, Index{1}, Index{1} << 20, "windows of the text in a step, on each rank");
  line.number("--seed", flags.seed, std::uint64_t{0}, ~std::uint64_t{0}, "initial parameters, order of the windows and generated text");
  line.words("--data", flags.data, "an ASCII text, plain or compressed by gzip");
  line.read([] {});
  return flags;
}

/// Returns a token at random, each with the probability that the model's outputs give it.
std::int32_t draw(std::span<const float> outputs, std::mt19937_64& random) {
  std::vector<double> weights;
  for (const float output : outputs) weights.push_back(std::exp(static_cast<double>(output)));
  return std::discrete_distribution<std::int32_t>{weights.begin(), weights.end()}(random);
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = parse(argc, argv);

  return examples::run(flags.launch, [&](pdp::comm::Any& world) {
    // [data]
    const std::vector<std::byte> bytes = pdp::data::read_unpacked(flags.data);
    const pdp::data::MappedRows text =
        pdp::data::map_raw(pdp::data::Input{bytes, flags.data}, {.type = pdp::data::ElementType::U8, .row = pdp::Shape{1}});
    const Index most = text.size() / 10 * 9;
    const pdp::data::NextTokens train{text, positions, {.end = most}}, test{text, positions, {.first = most}};
    // [data]

    // [train]
    const pdp::Task task{gpt, pdp::loss::CrossEntropy{}, pdp::optim::AdamW{.lr = 2e-3f, .weight_decay = 0.1f},
                         pdp::optim::WarmUp<pdp::optim::Cosine>{50, {.steps = flags.steps}}};
    pdp::Trainer trainer{
        world,
        Strategy{},
        task,
        {.global_batch = flags.batch_size * world.size(), .seed = flags.seed, .input = train.sample_shape(), .clip_norm = 1}};
    const double bit = std::log(2.0);
    trainer.fit(
        train, {.progress = false, .steps = flags.steps}, [](const pdp::Epoch&) {},
        [&](std::int64_t step, const auto& totals) {
          if (step % 50 == 0) pdp::print(world, "step {} | bits per character {:.3f}", step, totals.mean_loss() / bit);
        });
    // [train]

    // [generate]
    std::vector<std::int32_t> window(positions), unused(positions);
    test.gather(std::vector<Index>{0}, window, unused);
    std::string written;
    std::mt19937_64 random{flags.seed};
    while (pdp::as_index(written.size()) < flags.generate) {
      const std::vector<float> outputs = trainer.predict(window);
      window.erase(window.begin());
      window.push_back(draw(std::span{outputs}.last(vocabulary), random));
      written += static_cast<char>(window.back());
    }
    if (!written.empty()) pdp::print(world, "{}", written);
    // [generate]
    pdp::print(world, "test bits per character {:.3f}", trainer.evaluate(test).mean_loss() / bit);
  });
}
