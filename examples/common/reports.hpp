#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <pdp/pdp.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/report.hpp>
#include <pdp/train/step_timeline.hpp>

#include "flags.hpp"

namespace examples {

/// Writes the files of --losses, --timeline and --report: the loss of every step, the timeline of the fifth step, or of the last one if
/// there are fewer, and a page about the training. All ranks make the same calls; rank 0 writes.
template <class Trainer>
class Reports {
 public:
  Reports(Trainer& trainer, const TrainingFlags& flags, int rank) {
    if (!flags.losses.empty() && rank == 0) losses_.emplace(flags.losses);
    if (!flags.timeline.empty()) timeline_.emplace(trainer, flags.timeline, rank);
    if (!flags.report.empty()) page_.emplace(trainer, flags.report);
  }
  void step(std::int64_t number, const pdp::engine::Totals& totals) {
    if (losses_) losses_->write(number, totals.mean_loss());
    if (timeline_) timeline_->after_step(number);
    if (page_) page_->step(number, totals);
  }
  void epoch(const pdp::Epoch& epoch) {
    if (page_) page_->epoch(epoch);
  }
  /// Adds a value that was measured after the last step.
  void metric(std::string_view name, double value) {
    if (page_) page_->metric(name, value);
  }
  /// Closes the files. Throws pdp::FileError if they could not be written completely.
  void close() {
    if (losses_) losses_->close();
    if (timeline_) timeline_->write();
    if (page_) page_->write();
  }

 private:
  std::optional<pdp::LossLog> losses_;
  std::optional<pdp::StepTimeline<Trainer>> timeline_;
  std::optional<pdp::Report<Trainer>> page_;
};

/// Prints what each rank of the world would hold, send and wait for; with --compare, a table of several strategies instead.
template <class World, class TaskType, pdp::strategy::Strategy S>
void print_plan(const World& world, const TrainingFlags& flags, const TaskType& task, const S& strategy,
                const pdp::TrainerOptions& options) {
  if (flags.compare) {
    const auto all = pdp::usual_strategies(world.size());
    if (flags.device == "cpu") return pdp::print(world, "{}", pdp::compare(task, all, world, options).text());
    return pdp::print(world, "{}", pdp::compare(task, all, world.size(), options).text());
  }
  if (flags.device == "cpu") return pdp::print(world, "{}", pdp::describe(task, strategy, world, options).text());
  auto planned = pdp::describe(task, strategy, world.size(), options);  // a plan needs no GPUs, so the world has none
  planned.device = "a GPU for each rank";
  pdp::print(world, "{}", planned.text());
}

}  // namespace examples
