#include "toy_flags.hpp"

#include <CLI/CLI.hpp>
#include <limits>

#include <pdp/launch/start/environment.hpp>

#include "comm_flag.hpp"
#include "device_flag.hpp"
#include "end.hpp"
#include "number_flag.hpp"
#include "path_flag.hpp"
#include "report_flags.hpp"

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
  pdp::open_standard_streams();
  ToyFlags flags;
  flags.launch.port = 29000;
  CLI::App app{"Trains a multilayer perceptron on a synthetic classification set.", argc > 0 ? argv[0] : ""};
  app.get_formatter()->column_width(44);
  constexpr pdp::Index one = 1, most = 1 << 24;
  constexpr int most_here = pdp::launch::most_local_ranks;
  app.add_option("--strategy", flags.strategy, "how training is spread over the ranks")
      ->check(CLI::IsMember({"single", "ddp", "my", "zero", "pipeline", "tensor"}))
      ->capture_default_str();
  add_number_flag(app, "--world-size,--ranks", flags.launch.ranks, 1, most_here,
                  "local processes (2 if nobody says, 1 for --strategy single)");
  add_number_flag(app, "--threads", flags.launch.threads, 1, most_here, "run this many ranks as threads of one process");
  add_comm_flag(app, flags.launch);
  add_number_flag(app, "--port", flags.launch.port, 1, 65535, "port of machine 0, where there are several");
  add_number_flag(app, "--stage", flags.stage, 1, 3, "of zero: the optimizer's state is cut (1), gradients too (2), parameters too (3)");
  add_number_flag(app, "--micro-batches", flags.micro_batches, 1, 1 << 14, "of pipeline: pieces of a batch, which follow one another");
  add_number_flag(app, "--n-layers", flags.layers, one, pdp::Index{1 << 12}, "layers with weights");
  add_number_flag(app, "--dim-in", flags.dim_in, one, most, "values of a sample");
  add_number_flag(app, "--dim-hidden", flags.dim_hidden, one, most, "outputs of all layers but the last");
  const CLI::Option* classes = add_number_flag(app, "--n-classes", flags.classes, one, most, "outputs of the last layer");
  add_number_flag(app, "--train-size", flags.train_size, pdp::Index{10}, most,
                  "samples that are made: the first tenth trains, the last tenth tests");
  add_number_flag(app, "--batch-size", flags.batch_size, one, most, "samples of a step, on each rank where ranks share the data");
  add_number_flag(app, "--learning-rate", flags.learning_rate, 0.0f, 1e6f,
                  "of the first step; it falls along a line to three tenths of that");
  add_number_flag(app, "--niters", flags.steps, std::int64_t{0}, std::int64_t{1'000'000'000}, "steps");
  add_number_flag(app, "--seed", flags.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
                  "of the first parameters and of the data");
  add_path_flag(app, "--data", flags.data,
                "take train.x, train.y, test.x and test.y from here (safetensors), and the dimensions with them");
  add_path_flag(app, "--init", flags.init, "take the first parameters from here (safetensors, PyTorch's names)");
  add_device_flag(app, flags.device);
  add_report_flags(app, flags);
  app.add_flag("--check", flags.check, "after each step, check that ranks that hold the same parameters hold them alike");
  try {
    app.parse(argc, argv);
    flags.says_classes = classes->count() > 0;
    choose_ranks(flags);
  } catch (const CLI::Success& wanted) {
    end_after(app, wanted);
  } catch (const std::exception& error) {
    end_after(app, error);
  }
  return flags;
}

}  // namespace examples
