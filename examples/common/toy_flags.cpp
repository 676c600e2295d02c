#include "toy_flags.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <limits>

#include <pdp/launch/environment.hpp>

#include "comm_flag.hpp"
#include "device_flag.hpp"
#include "report_flags.hpp"

namespace examples {

namespace {

/// One rank for the strategy of one, else two, unless the command line or the environment says otherwise.
void choose_ranks(ToyFlags& flags) {
  pdp::launch::Options& launch = flags.launch;
  const bool alone = flags.strategy == "single";
  if (!launch.ranks && !launch.threads && !pdp::launch::Place::given(pdp::launch::environment)) launch.ranks = alone ? 1 : 2;
  if (const int ranks = launch.ranks.value_or(launch.threads.value_or(1)); alone && ranks != 1)
    throw pdp::UsageError{pdp::text("--strategy single is for one rank, but ", ranks,
                                    " were asked for; leave --world-size out, or choose a strategy that spreads the work")};
  launch.check();
}

}  // namespace

ToyFlags parse_toy(int argc, char** argv) {
  ToyFlags flags;
  flags.launch.port = 29000;
  CLI::App app{"Trains a multilayer perceptron on a synthetic classification set.", argc > 0 ? argv[0] : ""};
  app.get_formatter()->column_width(44);
  constexpr pdp::Index most = 1 << 24;
  const CLI::Range count{pdp::Index{1}, most};
  app.add_option("--strategy", flags.strategy, "how training is spread over the ranks")
      ->check(CLI::IsMember({"single", "ddp", "my", "zero", "pipeline", "tensor"}))
      ->capture_default_str();
  app.add_option("--world-size,--ranks", flags.launch.ranks, "local processes (2 if nobody says, 1 for --strategy single)")
      ->check(CLI::Range(1, pdp::launch::most_ranks));
  app.add_option("--threads", flags.launch.threads, "run this many ranks as threads of one process")
      ->check(CLI::Range(1, pdp::launch::most_ranks));
  add_comm_flag(app, flags.launch);
  app.add_option("--port", flags.launch.port, "port of machine 0, where there are several")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--stage", flags.stage, "of zero: the optimizer's state is cut (1), gradients too (2), parameters too (3)")
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
  app.add_option("--micro-batches", flags.micro_batches, "of pipeline: pieces of a batch, which follow one another")
      ->check(CLI::Range(1, 1 << 14))
      ->capture_default_str();
  app.add_option("--n-layers", flags.layers, "layers with weights")->check(CLI::Range(1, 1 << 12))->capture_default_str();
  app.add_option("--dim-in", flags.dim_in, "values of a sample")->check(count)->capture_default_str();
  app.add_option("--dim-hidden", flags.dim_hidden, "outputs of all layers but the last")->check(count)->capture_default_str();
  const CLI::Option* classes =
      app.add_option("--n-classes", flags.classes, "outputs of the last layer")->check(count)->capture_default_str();
  app.add_option("--train-size", flags.train_size, "samples that are made: the first tenth trains, the last tenth tests")
      ->check(CLI::Range(pdp::Index{10}, most))
      ->capture_default_str();
  app.add_option("--batch-size", flags.batch_size, "samples of a step, on each rank where ranks share the data")
      ->check(count)
      ->capture_default_str();
  app.add_option("--learning-rate", flags.learning_rate, "of the first step; it falls along a line to three tenths of that")
      ->check(CLI::Range(0.0f, std::numeric_limits<float>::max()))
      ->capture_default_str();
  app.add_option("--niters", flags.steps, "steps")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--seed", flags.seed, "of the first parameters and of the data")->capture_default_str();
  app.add_option("--data", flags.data, "take train.x, train.y, test.x and test.y from here (safetensors), and the dimensions with them");
  app.add_option("--init", flags.init, "take the first parameters from here (safetensors, PyTorch's names)");
  add_device_flag(app, flags.device);
  add_report_flags(app, flags);
  app.add_flag("--check", flags.check, "after each step, check that ranks that hold the same parameters hold them alike");
  try {
    app.parse(argc, argv);
    flags.says_classes = classes->count() > 0;
    choose_ranks(flags);
  } catch (const CLI::Success& wanted) {
    std::exit(app.exit(wanted));
  } catch (const std::exception& error) {
    std::cerr << error.what() << ". Run " << app.get_name() << " --help for the flags and what they take.\n";
    std::exit(2);
  }
  return flags;
}

}  // namespace examples
