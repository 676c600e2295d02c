#pragma once

/// Definitions for pdp/train/saver.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/checkpoint_options.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/saver.hpp>

namespace pdp {

PDP_INLINE std::int64_t TrainingPosition::begin_fit(const FitOptions& fit, const TrainerOptions& options, const detail::DataDivision& data,
                                                    bool resumed) {
  resumed_ = resumed_ || resumed;
  if (!resumed_) epochs_of_fits_ = position_.epoch;
  const std::int64_t most = std::numeric_limits<int>::max() - epochs_of_fits_;
  if (fit.steps == 0 && (fit.epochs < 0 || fit.epochs > most))
    throw ConfigError{text("epochs = ", fit.epochs, " was given; fit takes 0 to ", most)};
  if (fit.steps < 0) throw ConfigError{text("steps = ", fit.steps, " was given; fit takes 0 (no limit) or more")};
  const bool is_same = position_.parts == data.parts && position_.samples == data.samples && position_.shuffle == fit.shuffle &&
                       position_.seed == options.seed && position_.global_batch == options.global_batch;
  if (position_.batch > 0 && !is_same && ended_at_ == std::pair{position_.epoch, position_.batch}) {
    ++position_.epoch;
    ++epochs_of_fits_;
    position_.batch = 0;
    position_.epoch_loss = position_.epoch_correct = position_.epoch_rows = position_.epoch_weight = 0;
  }
  const auto differs = [](std::string_view what, auto there, auto here) {
    throw ConfigError{text("the checkpoint is from the middle of an epoch with ", what, " = ", there, ", but here it is ", here,
                           "; continue with the same, or from a checkpoint at the end of an epoch")};
  };
  const auto word = [](bool value) { return value ? "true" : "false"; };
  if (position_.batch > 0) {
    const std::vector<Index>&before = position_.parts, &parts = data.parts;
    if (before.size() != parts.size()) differs("number of parts in data::PerRank", before.size(), parts.size());
    for (std::size_t part = 0; part < parts.size(); ++part)
      if (before[part] != parts[part]) differs(text("size of part ", part, " of data::PerRank"), before[part], parts[part]);
    if (position_.samples != data.samples) differs("size of the dataset", position_.samples, data.samples);
    if (position_.shuffle != fit.shuffle) differs("shuffle", word(position_.shuffle), word(fit.shuffle));
    if (position_.seed != options.seed) differs("seed", position_.seed, options.seed);
    if (position_.global_batch != options.global_batch) differs("global_batch", position_.global_batch, options.global_batch);
  }
  position_.samples = data.samples;
  position_.parts = data.parts;
  position_.shuffle = fit.shuffle;
  position_.seed = options.seed;
  position_.global_batch = options.global_batch;
  if (fit.steps > 0) return std::numeric_limits<int>::max();
  return epochs_of_fits_ += fit.epochs;
}

PDP_INLINE CallArguments detail::arguments_of(CallArguments of_data, const FitOptions& fit, Index before) {
  of_data.epochs = fit.epochs;
  of_data.steps = fit.steps;
  of_data.epochs_before = before;
  of_data.shuffle = fit.shuffle;
  of_data.checkpoint = numbers_of(fit.checkpoint);
  of_data.validates = static_cast<bool>(fit.validation);
  const auto hashes = [](const std::vector<metric::Any>& metrics) {
    std::vector<std::int64_t> names;
    for (const metric::Any& each : metrics) names.push_back(static_cast<std::int64_t>(random::hash(each.name())));
    return names;
  };
  of_data.metrics = hashes(fit.metrics);
  of_data.training_metrics = hashes(fit.training_metrics);
  of_data.callbacks = as_index(fit.callbacks.size());
  return of_data;
}

PDP_INLINE void TrainingPosition::set_rate_factor(double factor) {
  if (!is_finite(factor) || factor < 0)
    throw ConfigError{text("the factor of the learning rate is ", factor, "; give it a finite number from 0 on")};
  position_.rate_factor = factor;
}

PDP_INLINE void check(const CheckpointOptions& options) {
  if (options.every_steps < 0 || options.every_epochs < 0 || options.keep < 0 || options.stop_after.count() < 0)
    throw ConfigError{text("expected numbers of 0 or more for a checkpoint's every_steps, every_epochs, keep and stop_after, found ",
                           options.every_steps, ", ", options.every_epochs, ", ", options.keep, " and ", options.stop_after.count())};
}

PDP_INLINE std::vector<std::int64_t> numbers_of(const CheckpointOptions& options) {
  std::vector<std::int64_t> numbers{options.every_steps, options.every_epochs, options.asynchronous ? 1 : 0, options.keep,
                                    options.stop_after.count()};
  for (const char letter : options.directory.string()) numbers.push_back(static_cast<unsigned char>(letter));
  return numbers;
}

}  // namespace pdp
