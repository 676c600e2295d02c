#include <CLI/CLI.hpp>
#include <limits>

#include <pdp/launch/place.hpp>
#include <pdp/launch/start/environment.hpp>

#include "command_line.hpp"
#include "flags.hpp"

namespace examples {

namespace {

/// One rank for the strategy of one, else two, unless the command line or the environment says otherwise.
void choose_ranks(ToyFlags& flags) {
  pdp::launch::Options& launch = flags.launch;
  const bool alone = flags.strategy == "single";
  if (!launch.ranks && !launch.threads && !pdp::launch::JobPlace::given(pdp::launch::environment)) launch.ranks = alone ? 1 : 2;
  if (const int ranks = launch.ranks.value_or(launch.threads.value_or(1)); alone && ranks != 1)
    throw pdp::UsageError{pdp::text("--strategy single is for one rank, but ", ranks,
                                    " were asked for; leave --world-size out, or choose a strategy that spreads the work")};
  launch.check();
}

}  // namespace

ToyFlags parse_toy(int argc, char** argv) {
  ToyFlags flags;
  flags.launch.port = 29000;
  CommandLine line{argc, argv, "Trains a multilayer perceptron on a synthetic classification set."};
  constexpr pdp::Index one = 1, most = 1 << 24;
  constexpr int most_here = pdp::launch::most_local_ranks;
  line.add_option("--strategy", flags.strategy, "how training is spread over the ranks")
      ->check(CLI::IsMember({"single", "ddp", "my", "zero", "pipeline", "tensor"}))
      ->capture_default_str();
  line.number("--world-size,--ranks", flags.launch.ranks, 1, most_here, "local processes (2 if nobody says, 1 for --strategy single)");
  line.threads(flags.launch);
  line.number("--port", flags.launch.port, 1, 65535, "port of machine 0, where there are several");
  line.number("--stage", flags.stage, 1, 3, "of zero: the optimizer's state is cut (1), gradients too (2), parameters too (3)");
  line.number("--micro-batches", flags.micro_batches, 1, 1 << 14, "of pipeline: pieces of a batch, which follow one another");
  line.number("--n-layers", flags.layers, one, pdp::Index{1 << 12}, "layers with weights");
  line.number("--dim-in", flags.dim_in, one, most, "values of a sample");
  line.number("--dim-hidden", flags.dim_hidden, one, most, "outputs of all layers but the last");
  const CLI::Option* classes = line.number("--n-classes", flags.classes, one, most, "outputs of the last layer");
  line.number("--train-size", flags.train_size, pdp::Index{10}, most,
              "samples that are made: the first tenth trains, the last tenth tests");
  line.number("--batch-size", flags.batch_size, one, most, "samples of a step, on each rank where ranks share the data");
  line.number("--learning-rate", flags.learning_rate, 0.0f, 1e6f, "of the first step; it falls along a line to three tenths of that");
  line.number("--niters", flags.steps, std::int64_t{0}, std::int64_t{1'000'000'000}, "steps");
  line.number("--seed", flags.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), "of the first parameters and of the data");
  line.words("--data", flags.data, "take train.x, train.y, test.x and test.y from here (safetensors), and the dimensions with them");
  line.words("--init", flags.init, "take the first parameters from here (safetensors, PyTorch's names)");
  line.device(flags.device);
  line.reports(flags.losses, flags.timeline, flags.plan);
  line.add_flag("--check", flags.check, "after each step, check that ranks that hold the same parameters hold them alike");
  line.read(words_of(argc, argv), [&] {
    flags.says_classes = classes->count() > 0;
    choose_ranks(flags);
  });
  return flags;
}

}  // namespace examples
