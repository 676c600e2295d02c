// A multilayer perceptron on a synthetic classification set, spread over ranks in one of several ways. The mathematics is the same in all.
//
//   toy_mlp --strategy single                       one process
//   toy_mlp --world-size 2                          two data-parallel processes
//   toy_mlp --strategy zero --stage 3 --threads 2   two threads that keep slices of everything
//   toy_mlp --strategy single --device cuda         one GPU

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <span>

#include <pdp/pdp.hpp>

#include "common/flags.hpp"
#include "common/parameters.hpp"
#include "common/reports.hpp"
#include "common/run.hpp"
#include "common/toy_data.hpp"
#include "my_data_parallel.hpp"

using examples::Samples, examples::ToyFlags, examples::TrainAndTest;
using pdp::Index;

pdp::strategy::AnyStrategy strategy_of(const ToyFlags& flags) {
  using namespace pdp::strategy;
  if (flags.strategy == "single") return Single{};
  if (flags.strategy == "my") return MyDataParallel{};
  if (flags.strategy == "zero") return Zero{.stage = flags.stage};
  if (flags.strategy == "tensor") return TensorParallel{};
  if (flags.strategy == "pipeline") return Pipeline<OneForwardOneBackward>{.micro_batches = flags.micro_batches};
  return DataParallel{};
}

/// The set that the flags ask for, and the widths of a model for it.
std::pair<TrainAndTest, std::vector<Index>> set_and_widths(const ToyFlags& flags) {
  std::vector<Index> widths(static_cast<std::size_t>(flags.layers) + 1, flags.dim_hidden);
  if (flags.data.empty()) {
    widths.front() = flags.dim_in;
    widths.back() = flags.classes;
    return {examples::make({flags.train_size, flags.dim_in, flags.classes, flags.seed}), widths};
  }
  if (!flags.init.empty()) widths = examples::widths_in(flags.init);
  TrainAndTest set = examples::read_toy(flags.data, !flags.init.empty() ? widths.back() : flags.says_classes ? flags.classes : 0);
  if (flags.init.empty()) widths.front() = set.train.width;
  widths.back() = set.classes;
  if (widths.front() != set.train.width)
    throw pdp::FileError{pdp::text(flags.init, " holds the parameters of another model: it takes ", widths.front(),
                                   " values a sample, but those in ", flags.data, " have ", set.train.width)};
  return {std::move(set), widths};
}

int main(int argc, char** argv) {
  const ToyFlags flags = examples::parse_toy(argc, argv);

  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    const auto [set, widths] = set_and_widths(flags);
    const Samples& train = set.train;
    const pdp::Task task{pdp::nn::MultilayerPerceptron{widths, pdp::nn::Tanh{}, {.bias = false, .initializer = pdp::nn::kaiming_uniform}},
                         pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = flags.learning_rate},
                         pdp::optim::Linear{.steps = flags.steps, .to = 0.3f}};
    const bool shares_data = flags.strategy == "ddp" || flags.strategy == "my" || flags.strategy == "zero";
    const Index batch = flags.batch_size * (shares_data ? world.size() : 1), batches = train.size() / batch;
    if (batches == 0)
      throw pdp::UsageError{pdp::text("a step takes ", batch, " samples, but the training set has ", train.size(),
                                      "; choose a smaller --batch-size, fewer ranks, or a larger --train-size")};

    const pdp::TrainerOptions options{.global_batch = batch, .seed = flags.seed};
    if (flags.plan) return examples::print_plan(world, flags.device, task, strategy_of(flags), options);
    pdp::Trainer trainer{world, strategy_of(flags), task, options, device...};
    if (!flags.init.empty()) trainer.set_parameters(examples::load(flags.init), flags.init);
    examples::Record record{flags, world.rank()};
    examples::TimelineFile timeline{trainer, flags.timeline, world.rank()};
    const pdp::data::InMemory<std::int32_t> test{pdp::Shape{set.test.width}, set.test.x, set.test.y};
    const pdp::data::Rows rows = pdp::data::shard_rows(batch, trainer.share());

    pdp::print(world, "strategy {} | ranks {} | widths {} | train samples {} | test samples {} | batch {} | learning rate {} | steps {}",
               flags.strategy, world.size(), fmt::join(widths, "-"), train.size(), test.size(), batch, flags.learning_rate, flags.steps);
    using Clock = std::chrono::steady_clock;
    Clock::duration busy{};
    for (std::int64_t step = 0, since = 0; step < flags.steps; ++step) {
      const bool is_shown = step % 100 == 0;
      const double test_loss = is_shown ? trainer.evaluate(test).mean_loss() : 0;
      const auto first = static_cast<std::size_t>(step % batches * batch + rows.first), count = static_cast<std::size_t>(rows.size()),
                 width = static_cast<std::size_t>(train.width);
      const Clock::time_point start = Clock::now();
      const auto totals =
          trainer.step(std::span{train.x}.subspan(first * width, count * width), std::span{train.y}.subspan(first, count), batch);
      busy += Clock::now() - start;
      record.step(step, totals.mean_loss());
      timeline.step(step);
      if (flags.check) trainer.check_parameters();
      if (!is_shown) continue;
      const double milliseconds = std::chrono::duration<double, std::milli>(busy).count() / static_cast<double>(step + 1 - since);
      pdp::print(world, "step {} | train_loss {:.4f} | test_loss {:.4f} | step time {:.2f}ms", step, totals.mean_loss(), test_loss,
                 milliseconds);
      busy = {};
      since = step + 1;
    }
    record.close();
    timeline.write();
  });
}
