#pragma once

#include <chrono>
#include <filesystem>

#include <pdp/core/shape.hpp>

namespace pdp {

/// The checkpoints that Trainer::fit() saves, and from which it continues if it is started again. If a folder is given, fit() also stops at
/// SIGTERM, SIGUSR1 and the end of its time: it saves a checkpoint and throws Stopped, on every rank after the same step.
struct CheckpointOptions {
  std::filesystem::path directory{};  // of the checkpoints of this training alone; empty: none are saved
  Index every_steps = 0;              // save after this many steps; 0: only after epochs
  int every_epochs = 0;               // save after this many epochs; 0: only after steps. If both are 0, every epoch
  bool asynchronous = false;          // write on a thread of each rank, from a copy of the state, while the training continues
  int keep = 3;                       // the number of checkpoints to keep; older ones are removed. 0: all
  std::chrono::seconds stop_after{};  // stop when the process has run for this time; 0: that of PDP_STOP_AFTER, or never
};

}  // namespace pdp
