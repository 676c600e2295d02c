#pragma once

#include <pdp/pdp.hpp>

#include "flags.hpp"
#include "parameters.hpp"
#include "reports.hpp"

namespace examples {

/// The model, loss and optimizer of the MNIST programs.
inline constexpr pdp::Task digit_classifier{
    pdp::nn::Sequential{pdp::nn::Linear{784, 64}, pdp::nn::Relu{}, pdp::nn::Linear{64, 64}, pdp::nn::Relu{}, pdp::nn::Linear{64, 64},
                        pdp::nn::Relu{}, pdp::nn::Linear{64, 10}},
    pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-3f}};

/// Trains it as the flags say, spread by a strategy, on the cores of this machine or on a device. `global_batch`: samples of a step.
template <class World, pdp::strategy::Strategy S, class... Device>
void train_digits(World& world, const S& strategy, const Flags& flags, pdp::Index global_batch, const Device&... device) {
  const pdp::TrainerOptions options{.global_batch = global_batch, .seed = flags.seed};
  if (flags.plan) return print_plan(world, flags.device, digit_classifier, strategy, options);
  const pdp::data::Mnist digits{flags.data};
  Record record{flags, world.rank(), flags.log};
  pdp::Trainer trainer{world, strategy, digit_classifier, options, device...};
  if (!flags.save.empty() && world.rank() == 0) check_writable(flags.save);
  if (!flags.load.empty()) trainer.set_parameters(load(flags.load), flags.load);
  TimelineFile timeline{trainer, flags.timeline, world.rank()};

  const auto after_epoch = [&](const pdp::Epoch& epoch) {
    pdp::print_epoch(world, epoch);
    if (record.wants_epochs()) record.epoch(epoch, trainer.accuracy(digits.test()));
    if (!flags.save.empty()) save(flags.save, trainer.parameters(), world.rank());
  };
  const auto after_step = [&](auto step, const auto& totals) {
    record.step(step, totals.mean_loss());
    timeline.step(step);
  };
  trainer.fit(digits.train(), {.epochs = flags.epochs}, after_epoch, after_step);
  record.close();
  timeline.write();

  pdp::print(world, "test accuracy {:.4f}", trainer.accuracy(digits.test()));
}

}  // namespace examples
