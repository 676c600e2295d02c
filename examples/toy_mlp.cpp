// Trains a multilayer perceptron on a synthetic classification set, with one of several strategies. All strategies do the same
// computation.
//
//   toy_mlp --strategy single                       one process
//   toy_mlp --world-size 2                          two data-parallel processes
//   toy_mlp --strategy zero --stage 3 --threads 2   two threads that shard parameters, gradients and optimizer state
//   toy_mlp --strategy single --device cuda         one GPU

#include <fmt/ranges.h>

#include <chrono>
#include <numeric>

#include <pdp/checkpoint/perceptron_widths.hpp>
#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/data/safetensors_classification.hpp>
#include <pdp/pdp.hpp>

#include "common/command_line.hpp"
#include "common/reports.hpp"
#include "common/run.hpp"
#include "my_data_parallel.hpp"

using pdp::Index;

struct ToyFlags : examples::TrainingFlags {
  std::string strategy = "ddp";
  Index layers = 4, dim_in = 1024, dim_hidden = 256, train_size = 10'000;
  std::optional<Index> classes;  // default: 32, or as many as the data has
  float learning_rate = 0.1f;
  std::int64_t steps = 1000;
  std::string init;    // input file: the parameters before the first step
  bool check = false;  // after each step, check that the ranks hold the same parameters
};

ToyFlags parse(int argc, char** argv) {
  ToyFlags flags;
  flags.launch.port = 29000;
  flags.batch_size = 64;
  examples::CommandLine line{argc, argv, "Trains a multilayer perceptron on a synthetic classification set."};
  constexpr Index one = 1, most = 1 << 24;
  line.choice("--strategy", flags.strategy, {"single", "ddp", "my", "zero", "pipeline", "tensor"}, "how training is spread over the ranks");
  line.ranks(flags.launch, " (default: 2, or 1 for --strategy single)");
  line.number("--port", flags.launch.port, 1, 65535, "port of machine 0, if there are several");
  line.number("--stage", flags.stage, 1, 3, "for zero: shards the optimizer state (1), also gradients (2), also parameters (3)");
  line.number("--micro-batches", flags.micro_batches, 1, 1 << 14, "for pipeline: micro-batches per step");
  line.number("--n-layers", flags.layers, one, Index{1 << 12}, "layers with weights");
  line.number("--dim-in", flags.dim_in, one, most, "values of a sample");
  line.number("--dim-hidden", flags.dim_hidden, one, most, "outputs of all layers but the last");
  line.number("--n-classes", flags.classes, one, most, "outputs of the last layer (default: 32, or the number in --data)");
  line.number("--train-size", flags.train_size, Index{10}, most,
              "samples to generate: the first tenth for training, the last tenth for testing");
  line.number("--learning-rate", flags.learning_rate, 0.0f, 1e6f,
              "learning rate of the first step; it decreases linearly to 0.3 times that");
  line.number("--niters", flags.steps, std::int64_t{0}, std::int64_t{1'000'000'000}, "steps");
  line.words("--data", flags.data, "read train.x, train.y, test.x and test.y from this file (safetensors); they also set the dimensions");
  line.words("--init", flags.init, "read the initial parameters from this file (safetensors, PyTorch's names)");
  line.training(flags, "on each rank if the ranks share the data");
  line.add_flag("--check", flags.check, "after each step, check that all replicas of a parameter are equal");
  line.read([&] {
    const bool alone = flags.strategy == "single";
    if (!flags.launch.ranks_are_given()) flags.launch.ranks = alone ? 1 : 2;
    if (const int ranks = flags.launch.ranks.value_or(flags.launch.threads.value_or(1)); alone && ranks != 1)
      throw pdp::UsageError{pdp::text("--strategy single is for one rank, but ", ranks,
                                      " were requested; omit --ranks or --threads, or choose a strategy for several ranks")};
  });
  return flags;
}

pdp::strategy::AnyStrategy strategy_of(const ToyFlags& flags) {
  using namespace pdp::strategy;
  if (flags.strategy == "single") return Single{};
  if (flags.strategy == "my") return MyDataParallel{};
  if (flags.strategy == "zero") return Zero{.stage = flags.stage};
  if (flags.strategy == "tensor") return TensorParallel{};
  if (flags.strategy == "pipeline") return Pipeline<OneForwardOneBackward>{.micro_batches = flags.micro_batches};
  return DataParallel{};
}

/// Returns the dataset that the flags ask for, and the widths of a model for it. `init`: the initial parameters from the file of --init;
/// empty without that flag.
std::pair<pdp::data::Classification, std::vector<Index>> set_and_widths(const ToyFlags& flags,
                                                                        const std::vector<pdp::checkpoint::Tensor>& init) {
  const Index classes = flags.classes.value_or(32);
  std::vector<Index> widths(pdp::as_size(flags.layers) + 1, flags.dim_hidden);
  widths.front() = flags.dim_in;
  widths.back() = classes;
  if (flags.data.empty()) return {pdp::data::make_classification({flags.train_size, flags.dim_in, classes, flags.seed}), widths};
  if (!flags.init.empty()) widths = pdp::checkpoint::perceptron_widths(init, flags.init);
  auto set = pdp::data::read_classification(flags.data, flags.init.empty() ? flags.classes.value_or(0) : widths.back());
  const Index width = set.train.sample_shape().elements();
  if (flags.init.empty()) widths.front() = width;
  widths.back() = set.classes;
  if (widths.front() != width)
    throw pdp::FileError{pdp::text(flags.init, " holds the parameters of another model: its samples have ", widths.front(),
                                   " values, but those in ", flags.data, " have ", width)};
  return {std::move(set), widths};
}

int main(int argc, char** argv) {
  const ToyFlags flags = parse(argc, argv);

  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    std::optional<pdp::StopRequests> stop;
    if (!flags.checkpoint.empty()) stop.emplace(flags.stop_after);
    const auto init = flags.init.empty() ? std::vector<pdp::checkpoint::Tensor>{} : pdp::checkpoint::load(flags.init);
    const auto [set, widths] = set_and_widths(flags, init);
    // [task]
    const pdp::Task task{pdp::nn::MultilayerPerceptron{widths, pdp::nn::Tanh{}, {.bias = false, .initializer = pdp::nn::kaiming_uniform}},
                         pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = flags.learning_rate},
                         pdp::optim::Linear{.steps = flags.steps, .to = 0.3f}};
    // [task]
    const bool shares_data = flags.strategy == "ddp" || flags.strategy == "my" || flags.strategy == "zero";
    const Index batch = flags.batch_size * (shares_data ? world.size() : 1), batches = set.train.size() / batch;
    if (batches == 0)
      throw pdp::UsageError{pdp::text("a step needs ", batch, " samples, but the training set has ", set.train.size(),
                                      "; choose a smaller --batch-size, fewer ranks, or a larger --train-size")};

    const pdp::TrainerOptions options{.global_batch = batch, .seed = flags.seed};
    if (flags.plan) return examples::print_plan(world, flags, task, strategy_of(flags), options);
    pdp::Trainer trainer{world, strategy_of(flags), task, options, device...};
    if (!flags.init.empty()) trainer.set_parameters(init, flags.init);
    if (!flags.checkpoint.empty()) trainer.resume(flags.checkpoint);
    examples::Reports reports{trainer, flags, world.rank()};

    pdp::print(world, "strategy {} | ranks {} | widths {} | train samples {} | test samples {} | batch {} | learning rate {} | steps {}",
               flags.strategy, world.size(), fmt::join(widths, "-"), set.train.size(), set.test.size(), batch, flags.learning_rate,
               flags.steps);
    // [share]
    const pdp::data::Rows share = pdp::data::shard_rows(batch, trainer.share());
    std::vector<Index> samples(pdp::as_size(share.size()));
    std::vector<float> x(samples.size() * pdp::as_size(widths.front()));
    std::vector<std::int32_t> y(samples.size());
    // [share]
    std::chrono::duration<double, std::milli> busy{};
    for (std::int64_t step = trainer.steps(), since = step; step < flags.steps; ++step) {
      const bool is_shown = step % 100 == 0;
      const double test_loss = is_shown ? trainer.evaluate(set.test).mean_loss() : 0;
      // [step]
      std::iota(samples.begin(), samples.end(), step % batches * batch + share.first);
      set.train.gather(samples, x, y);
      const auto start = std::chrono::steady_clock::now();
      if (stop && stop->requested()) trainer.request_stop();
      const auto totals = trainer.step(x, y, batch);
      // [step]
      busy += std::chrono::steady_clock::now() - start;
      reports.step(step, totals);
      if (is_shown) reports.metric("test loss", test_loss);
      const bool stops = totals.stops > 0, is_due = flags.checkpoint_every > 0 && (step + 1) % flags.checkpoint_every == 0;
      if (!flags.checkpoint.empty() && (stops || is_due || step + 1 == flags.steps)) trainer.save(flags.checkpoint);
      if (stops && stop) stop->agreed();
      if (stops) throw pdp::Stopped{pdp::text("stopped on request after step ", step + 1, "; start the program again to continue")};
      // [check]
      if (flags.check) trainer.check_parameters();
      // [check]
      if (!is_shown) continue;
      pdp::print(world, "step {} | train_loss {:.4f} | test_loss {:.4f} | step time {:.2f}ms", step, totals.mean_loss(), test_loss,
                 busy.count() / static_cast<double>(step + 1 - since));
      busy = {};
      since = step + 1;
    }
    reports.close();
  });
}
