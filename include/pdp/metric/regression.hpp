#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/metric/metric.hpp>

/// Metrics for targets that are vectors as wide as the outputs.
namespace pdp::metric {

/// The mean over rows and outputs of |output - target|.
struct MeanAbsoluteError {
  [[nodiscard]] std::string name() const { return "mean absolute error"; }
  [[nodiscard]] Index state_size(Index) const { return 2; }  // sum, number of values
  void add(Matrix<const float> outputs, std::span<const float> targets, std::span<double> state) const {
    for (Index i = 0; i < outputs.size(); ++i) state[0] += std::abs(as_double(outputs.data[i]) - as_double(targets[as_size(i)]));
    state[1] += as_double(outputs.size());
  }
  [[nodiscard]] double result(std::span<const double> state) const { return ratio(state[0], state[1]); }
};

/// The root of the mean over rows and outputs of (output - target)^2.
struct RootMeanSquaredError {
  [[nodiscard]] std::string name() const { return "root mean squared error"; }
  [[nodiscard]] Index state_size(Index) const { return 2; }  // sum, number of values
  void add(Matrix<const float> outputs, std::span<const float> targets, std::span<double> state) const {
    for (Index i = 0; i < outputs.size(); ++i) {
      const double error = as_double(outputs.data[i]) - as_double(targets[as_size(i)]);
      state[0] += error * error;
    }
    state[1] += as_double(outputs.size());
  }
  [[nodiscard]] double result(std::span<const double> state) const { return std::sqrt(ratio(state[0], state[1])); }
};

/// The coefficient of determination: 1 - (sum of squared errors) / (sum of squared deviations of the targets from their mean), as the mean
/// over the outputs. If all targets of an output are equal, it is 1 for outputs without an error, otherwise 0.
struct RSquared {
  static constexpr bool higher_is_better = true;

  [[nodiscard]] std::string name() const { return "R2"; }
  /// The number of rows; for each output the mean of the targets, the sum of their squared deviations, and the sum of squared errors.
  [[nodiscard]] Index state_size(Index outputs) const { return 1 + 3 * outputs; }
  void add(Matrix<const float> outputs, std::span<const float> targets, std::span<double> state) const {
    for (Index r = 0; r < outputs.rows; ++r) {
      ++state[0];
      for (Index c = 0; c < outputs.cols; ++c) {
        const double target = as_double(targets[as_size(r * outputs.cols + c)]), error = as_double(outputs.row(r)[c]) - target;
        const std::span<double> column = state.subspan(as_size(1 + 3 * c), 3);
        const double before = target - column[0];
        column[0] += before / state[0];
        column[1] += before * (target - column[0]);
        column[2] += error * error;
      }
    }
  }
  /// Merges means and squared deviations as Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
  /// variances", 1979.
  void merge(std::span<double> state, std::span<const double> other) const {
    const double rows = state[0] + other[0];
    if (other[0] == 0) return;
    for (std::size_t at = 1; at < state.size(); at += 3) {
      const double apart = other[at] - state[at];
      state[at] += apart * other[0] / rows;
      state[at + 1] += other[at + 1] + apart * apart * state[0] * other[0] / rows;
      state[at + 2] += other[at + 2];
    }
    state[0] = rows;
  }
  [[nodiscard]] double result(std::span<const double> state) const {
    double sum = 0;
    for (std::size_t at = 1; at < state.size(); at += 3) {
      const double deviations = state[at + 1], errors = state[at + 2];
      sum += deviations > 0 ? 1 - errors / deviations : errors == 0 ? 1 : 0;
    }
    const std::size_t outputs = state.size() / 3;
    return state[0] > 0 ? sum / as_double(outputs) : not_a_number<double>();
  }
};

static_assert(Metric<MeanAbsoluteError> && Metric<RootMeanSquaredError> && Metric<RSquared>);

}  // namespace pdp::metric
