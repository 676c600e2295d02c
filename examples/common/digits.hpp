#pragma once

#include <optional>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/data/replace_file.hpp>
#include <pdp/pdp.hpp>

#include "flags.hpp"
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
  const bool is_root = world.rank() == 0;  // it alone writes files
  const pdp::data::Mnist digits{flags.data};
  pdp::Trainer trainer{world, strategy, digit_classifier, options, device...};
  Reports reports{trainer, flags, world.rank()};
  std::optional<pdp::EpochLog> log;
  if (is_root && !flags.log.empty()) log.emplace(flags.log);
  if (is_root && !flags.save.empty()) pdp::data::check_writable(flags.save);
  if (!flags.load.empty()) trainer.set_parameters(pdp::checkpoint::load(flags.load), flags.load);

  const auto after_epoch = [&](const pdp::Epoch& epoch) {
    pdp::print_epoch(world, epoch);
    const double accuracy = flags.log.empty() ? 0 : trainer.accuracy(digits.test());
    if (log) log->write(epoch, accuracy);
    if (flags.save.empty()) return;
    const auto parameters = trainer.parameters();
    if (is_root) pdp::checkpoint::save(flags.save, parameters);
  };
  trainer.fit(digits.train(), {.epochs = flags.epochs}, after_epoch,
              [&](auto step, const auto& totals) { reports.step(step, totals.mean_loss()); });
  if (log) log->close();
  reports.close();

  pdp::print(world, "test accuracy {:.4f}", trainer.accuracy(digits.test()));
}

}  // namespace examples
