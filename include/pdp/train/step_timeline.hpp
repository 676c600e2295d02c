#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include <pdp/data/replace_file.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/train/timeline.hpp>

namespace pdp {

/// Traces one step of a Trainer and writes its timeline to a file (see write_timeline). Borrows the trainer. Every rank makes a
/// StepTimeline, and the same calls on it. Rank 0 writes the file.
template <class Trainer>
class StepTimeline {
 public:
  /// Traces the steps up to number `step`, of which write() writes the last. That is an earlier step only if there are fewer steps. Throws
  /// ConfigError or FileError on rank 0 if the file cannot be written.
  StepTimeline(Trainer& trainer, std::filesystem::path file, int rank, std::int64_t step = 4)
      : trainer_{trainer}, file_{std::move(file)}, is_root_{rank == 0}, step_{step} {
    if (is_root_) check_timeline_file(file_);
    if (is_root_) data::check_writable(file_);
    trainer_.trace(true);
  }

  /// Call it after each step, with the step's number, counted from 0.
  void after_step(std::int64_t number) {
    if (number >= step_) trainer_.trace(false);
  }

  /// Writes the file on rank 0. Throws FileError on rank 0 if that fails.
  void write() {
    const engine::Timeline timeline = trainer_.timeline();
    if (is_root_) write_timeline(file_, timeline);
  }

 private:
  Trainer& trainer_;
  std::filesystem::path file_;
  bool is_root_;
  std::int64_t step_;
};

}  // namespace pdp
