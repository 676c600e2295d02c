// A classifier of handwritten digits, trained by one rank: mnist_ddp.cpp with two other types.

#include <pdp/pdp.hpp>

#include "common/flags.hpp"
#include "common/parameters.hpp"
#include "common/plan.hpp"
#include "common/record.hpp"
#include "common/run.hpp"
#include "common/timeline.hpp"

namespace nn = pdp::nn;
using Comm = pdp::comm::Self;
using Strategy = pdp::strategy::Single;

constexpr pdp::Task digit_classifier{
    nn::Sequential{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 64}, nn::Relu{}, nn::Linear{64, 64}, nn::Relu{}, nn::Linear{64, 10}},
    pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-3f}};

int main(int argc, char** argv) {
  const auto flags = examples::parse(argc, argv, "Trains a classifier of handwritten digits.", {});

  const auto train = [&](auto& world, const auto&... device) {
    const pdp::TrainerOptions options{.global_batch = flags.batch_size * world.size(), .seed = flags.seed};
    if (flags.plan) return examples::print_plan(world, flags.device, digit_classifier, Strategy{}, options);
    const pdp::data::Mnist digits{flags.data};
    examples::Record record{flags, world.rank()};
    pdp::Trainer trainer{world, Strategy{}, digit_classifier, options, device...};
    if (!flags.save.empty() && world.rank() == 0) examples::check_writable(flags.save);
    if (!flags.load.empty()) trainer.set_parameters(examples::load(flags.load), flags.load);
    examples::TimelineFile timeline{trainer, flags.timeline, world.rank()};

    const auto after_epoch = [&](const pdp::Epoch& epoch) {
      pdp::print_epoch(world, epoch);
      if (record.wants_epochs()) record.epoch(epoch, trainer.accuracy(digits.test()));
      if (!flags.save.empty()) examples::save(flags.save, trainer.parameters(), world.rank());
    };
    const auto after_step = [&](auto step, const auto& totals) {
      record.step(step, totals.mean_loss());
      timeline.step(step);
    };
    trainer.fit(digits.train(), {.epochs = flags.epochs}, after_epoch, after_step);
    record.close();
    timeline.write();

    pdp::print(world, "test accuracy {:.4f}", trainer.accuracy(digits.test()));
  };
  if (flags.device == "cuda" && !flags.plan) return examples::run_on_gpus(flags.launch, train);
  return pdp::launch::run<Comm>(flags.launch, train);
}
