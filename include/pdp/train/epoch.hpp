#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/metric/any.hpp>

namespace pdp {

/// The totals over a dataset, and the metrics that were asked for. Equal on all ranks.
struct Evaluation : engine::Totals {
  std::vector<metric::Result> metrics{};

  /// Returns the metric of this name. Throws ConfigError if there is none.
  [[nodiscard]] const metric::Result& metric(std::string_view name) const;
};

/// The results of an epoch. Loss and accuracy are means over the samples of all ranks, each from before the update of its step. They do not
/// include steps that were skipped; if all were skipped, they are NaN.
struct Epoch {
  int number = 0;  // from 0
  double loss = 0;
  double accuracy = 0;
  double seconds = 0;                      // without the validation
  double learning_rate = 0;                // of the last step; for an optimizer without a member `lr`, the factor of the schedule
  std::optional<Evaluation> validation{};  // after the epoch, if fit() was given a validation set
  std::optional<Evaluation> training{};    // of the training set after the epoch, if fit() was given metrics of it

  /// Returns "loss" or "accuracy" of the training batches, "validation loss", "validation accuracy", or the number of the metric of this
  /// name. Results of the training set after the epoch are "training loss", "training accuracy", and "training " before a metric's name.
  /// Throws ConfigError, with the names that there are, if there is none or if it has several numbers.
  [[nodiscard]] double value(std::string_view name) const;
  /// Whether a higher value of that name is better.
  [[nodiscard]] bool higher_is_better(std::string_view name) const;
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/epoch.hpp>
#endif
