#pragma once

#include <optional>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/data/replace_file.hpp>
#include <pdp/pdp.hpp>

#include "flags.hpp"
#include "reports.hpp"

namespace examples {

/// Trains a model of digits as the flags say, and prints its accuracy. The model learns from changed(training set).
template <class World, class S, class TaskType, class Change, class... Device>
void train_digits(World& world, const S& strategy, const Flags& flags, const TaskType& task, const pdp::TrainerOptions& options,
                  const Change& changed, const Device&... device) {
  if (flags.plan) return print_plan(world, flags, task, strategy, options);
  const bool is_root = world.rank() == 0;  // only rank 0 writes files
  // [trainer]
  const pdp::data::Mnist digits{flags.data};
  pdp::Trainer trainer{world, strategy, task, options, device...};
  // [trainer]
  Reports reports{trainer, flags, world.rank()};
  std::optional<pdp::EpochLog> log;
  if (is_root && !flags.log.empty()) log.emplace(flags.log);
  if (is_root && !flags.save.empty()) pdp::data::check_writable(flags.save);
  if (!flags.load.empty()) trainer.set_parameters(pdp::checkpoint::load(flags.load), flags.load);

  // [epoch]
  const auto after_epoch = [&](const pdp::Epoch& epoch) {
    pdp::print_epoch(world, epoch);
    const double accuracy = flags.log.empty() && flags.report.empty() ? 0 : trainer.accuracy(digits.test());
    if (log) log->write(epoch, accuracy);
    reports.epoch(epoch);
    reports.metric("test accuracy", accuracy);
    if (flags.save.empty()) return;
    const auto parameters = trainer.parameters();
    if (is_root) pdp::checkpoint::save(flags.save, parameters);
  };
  // [epoch]
  // [fit]
  trainer.fit(changed(digits.train()),
              {.epochs = flags.epochs,
               .checkpoint = {.directory = flags.checkpoint, .every_steps = flags.checkpoint_every, .stop_after = flags.stop_after}},
              after_epoch, [&](auto step, const auto& totals) { reports.step(step, totals); });
  // [fit]
  if (log) log->close();
  reports.close();

  // [accuracy]
  pdp::print(world, "test accuracy {:.4f}", trainer.accuracy(digits.test()));
  // [accuracy]
}

}  // namespace examples
