#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/train/callback.hpp>
#include <pdp/train/log.hpp>

namespace pdp {

/// Stops a training when a result has not become better for `patience` epochs in a row. Checkpoints keep what it has seen, so a training
/// that is continued stops at the same epoch. NaN is never better.
struct EarlyStopping {
  int patience = 5;
  double least_change = 0;                  // a change that is not larger is no progress
  std::string watches = "validation loss";  // see Epoch::value()

  /// Throw ConfigError if patience is below 1, least_change is negative or NaN, or there is no such result.
  [[nodiscard]] Next begin(FitContext& context);
  [[nodiscard]] Next operator()(const Epoch& epoch, FitContext& context);

  std::optional<double> best{};  // so far
  int waited = 0;                // epochs since then
};

/// Keeps the parameters of the best epoch in memory, on each rank those that it keeps anyway. Sets them again when fit() ends; the state of
/// the optimizer remains that of the last epoch. Checkpoints do not keep them. A training that is continued begins anew with it.
struct KeepBest {
  std::string watches = "validation loss";  // see Epoch::value()

  void begin(FitContext& context);
  void operator()(const Epoch& epoch, FitContext& context);
  void end(FitContext& context) const;

  int epoch = -1;  // the best one so far
  double value = 0;
  std::vector<std::byte> parameters{};
};

/// Multiplies the factor of the learning rate (Trainer::learning_rate_factor) by `by` when a result no longer improves; see
/// optim::ReduceOnPlateau. Whether higher values are better follows from the result. Checkpoints keep the state, so a training that is
/// continued reduces the rate at the same epochs. Any other fit() begins anew, with the factor that the trainer has.
struct ReduceLearningRateOnPlateau {
  float by = 0.1f;                          // 0 to 1
  std::int64_t patience = 10;               // epochs without an improvement that change nothing; the next one reduces the rate
  double threshold = 1e-4;                  // the least improvement that counts
  bool is_relative = true;                  // whether `threshold` is a part of the best value so far
  std::int64_t cooldown = 0;                // epochs after a reduction that count as improvements
  float least = 0;                          // the product of all reductions falls no further than this, 0 to 1
  std::string watches = "validation loss";  // see Epoch::value()

  /// Throw ConfigError if an option is out of range, or there is no such result.
  void begin(FitContext& context);
  void operator()(const Epoch& epoch, FitContext& context);

  std::string state{};  // of optim::ReduceOnPlateau; empty before the first epoch
};

/// Writes the learning rate of each epoch to a CSV file: the header `epoch,learning_rate`, then a line for each epoch. Rank 0 writes.
class LearningRateLog {
 public:
  explicit LearningRateLog(std::filesystem::path file) : path_{std::move(file)} {}

  /// Replaces an existing file. Throws FileError if that fails.
  void begin(FitContext& context);
  void operator()(const Epoch& epoch) const;
  void end(FitContext& context) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<LineFile> file_;
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/callbacks.hpp>
#endif
