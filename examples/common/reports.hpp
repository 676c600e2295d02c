#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <pdp/pdp.hpp>
#include <pdp/train/log.hpp>

#include "flags.hpp"
#include "parameters.hpp"

namespace examples {

/// The files that --losses and --log ask for. Rank 0 writes them; the others write nothing.
class Record {
 public:
  Record(const TrainingFlags& flags, int rank, const std::string& log = {}) : wants_epochs_{!log.empty()} {
    if (rank != 0) return;
    if (!flags.losses.empty()) losses_.emplace(flags.losses).line("step,loss");
    if (wants_epochs_) log_.emplace(log);
  }
  /// Whether an epoch's line wants the test accuracy: the same on every rank.
  [[nodiscard]] bool wants_epochs() const { return wants_epochs_; }
  void epoch(const pdp::Epoch& epoch, double test_accuracy) {
    if (log_) log_->write(epoch, test_accuracy);
  }
  void step(std::int64_t step, double loss) {
    if (losses_) losses_->line(fmt::format("{},{:.9g}", step, loss));
  }
  /// Ends the files. Throws pdp::FileError if a line is lost.
  void close() {
    if (log_) log_->close();
    if (losses_) losses_->close();
  }

 private:
  bool wants_epochs_;
  std::optional<pdp::EpochLog> log_;
  std::optional<pdp::LineFile> losses_;
};

/// The file that --timeline asks for: the fifth step as it ran, or the last one if there are fewer. All ranks make the same calls.
template <class Trainer>
class TimelineFile {
 public:
  TimelineFile(Trainer& trainer, std::string file, int rank) : trainer_{trainer}, file_{std::move(file)}, rank_{rank} {
    if (file_.empty()) return;
    if (rank_ == 0) check_writable(file_);
    trainer_.trace(true);
  }
  void step(std::int64_t number) {
    if (number == 4 && !file_.empty()) trainer_.trace(false);
  }
  void write() {
    if (file_.empty()) return;
    const pdp::engine::Timeline timeline = trainer_.timeline();
    if (rank_ == 0) pdp::write_timeline(file_, timeline);
  }

 private:
  Trainer& trainer_;
  std::string file_;
  int rank_;
};

/// Prints what each rank of the world would hold, send and wait for. `device`: what --device names.
template <class World, class TaskType, pdp::strategy::Strategy S>
void print_plan(const World& world, const std::string& device, const TaskType& task, const S& strategy,
                const pdp::TrainerOptions& options) {
  if (device == "cpu") return pdp::print(world, "{}", pdp::describe(task, strategy, world, options).text());
  auto planned = pdp::describe(task, strategy, world.size(), options);  // the world has no GPUs, as a plan needs none
  planned.device = "a GPU for each rank";
  pdp::print(world, "{}", planned.text());
}

}  // namespace examples
