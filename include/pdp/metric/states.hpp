#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/metric/any.hpp>

namespace pdp::metric {

/// The states of several metrics on one rank. Borrows the metrics. `outputs`: number of a model's outputs.
class States {
 public:
  States(std::span<const Any> metrics, Index outputs) : metrics_{metrics} {
    for (const Any& each : metrics) {
      begins_.push_back(states_.size());
      states_.resize(states_.size() + each.state_size(outputs));
    }
    begins_.push_back(states_.size());
  }

  /// Counts rows: outputs [rows, outputs]; targets [rows, target elements]. No rows if the outputs are empty.
  template <class Target>
  void add(Matrix<const float> outputs, std::span<const Target> targets) {
    if (outputs.rows == 0) return;
    for (std::size_t i = 0; i < metrics_.size(); ++i) metrics_[i].add(outputs, targets, state(i));
  }
  /// The states, one behind another.
  [[nodiscard]] std::span<const double> own() const { return states_; }
  /// Replaces them by those of all ranks, merged. `all`: own() of each rank, one behind another.
  void set_all(std::span<const double> all) {
    const std::size_t size = states_.size();
    states_.assign(all.begin(), all.begin() + as_index(size));
    for (std::size_t from = size; from < all.size(); from += size)
      for (std::size_t i = 0; i < metrics_.size(); ++i)
        metrics_[i].merge(state(i), all.subspan(from + begins_[i], begins_[i + 1] - begins_[i]));
  }
  [[nodiscard]] std::vector<Result> results() {
    std::vector<Result> found;
    for (std::size_t i = 0; i < metrics_.size(); ++i) found.push_back(metrics_[i].result(state(i)));
    return found;
  }

 private:
  [[nodiscard]] std::span<double> state(std::size_t metric) {
    return std::span{states_}.subspan(begins_[metric], begins_[metric + 1] - begins_[metric]);
  }
  std::span<const Any> metrics_;
  std::vector<double> states_;
  std::vector<std::size_t> begins_;  // of each metric's state, and the end of the last one
};

}  // namespace pdp::metric
