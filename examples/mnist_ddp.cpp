// A classifier of handwritten digits, trained on data-parallel ranks: threads, processes of this machine, or processes of several.
//
//   mnist_ddp --ranks 2                        two processes on this machine
//   mnist_ddp --ranks 2 --comm tcp             the same, connected by TCP and not by memory that they share
//   mnist_ddp -n 2 -g 4 -nr 0 -ip 10.0.0.1     the first of two machines with four processes each

#include <pdp/pdp.hpp>

#include "common/flags.hpp"
#include "common/parameters.hpp"
#include "common/plan.hpp"
#include "common/record.hpp"
#include "common/run.hpp"
#include "common/timeline.hpp"

namespace nn = pdp::nn;
using Strategy = pdp::strategy::DataParallel;

constexpr pdp::Task digit_classifier{
    nn::Sequential{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 64}, nn::Relu{}, nn::Linear{64, 64}, nn::Relu{}, nn::Linear{64, 10}},
    pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-3f}};

int main(int argc, char** argv) {
  const auto flags = examples::parse(argc, argv, "Trains a classifier of handwritten digits on data-parallel ranks.", {.ranks = true});

  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
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
  });
}
