#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/metric/any.hpp>

namespace pdp::metric {

/// The states of several metrics on one rank. Borrows the metrics. `outputs`: number of a model's outputs.
class States {
 public:
  States(std::span<const Any> metrics, Index outputs);

  /// Counts rows: outputs [rows, outputs]; targets [rows, target elements]. No rows if the outputs are empty.
  template <class Target>
  void add(Matrix<const float> outputs, std::span<const Target> targets) {
    if (outputs.rows == 0) return;
    for (std::size_t i = 0; i < metrics_.size(); ++i) metrics_[i].add(outputs, targets, state(i));
  }
  /// The states, one behind another.
  [[nodiscard]] std::span<const double> own() const { return states_; }
  /// Replaces them by those of all ranks, merged. `all`: own() of each rank, one behind another.
  void set_all(std::span<const double> all);
  [[nodiscard]] std::vector<Result> results();

 private:
  [[nodiscard]] std::span<double> state(std::size_t metric) {
    return std::span{states_}.subspan(begins_[metric], begins_[metric + 1] - begins_[metric]);
  }
  std::span<const Any> metrics_;
  std::vector<double> states_;
  std::vector<std::size_t> begins_;  // of each metric's state, and the end of the last one
};

}  // namespace pdp::metric

#ifndef PDP_SEPARATE_CORE
#include <pdp/metric/source/states.hpp>
#endif
