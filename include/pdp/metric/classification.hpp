#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/metric/metric.hpp>

/// Metrics for targets that are class numbers. A row whose output is NaN at its class counts as wrong.
namespace pdp::metric {

/// The fraction of rows whose class is among the k largest outputs. An output that is as large as that of the class does not displace it.
struct TopK {
  static constexpr bool higher_is_better = true;
  int k = 5;

  [[nodiscard]] std::string name() const { return text("top-", k, " accuracy"); }
  [[nodiscard]] Index state_size(Index) const { return 2; }  // rows that are right, all rows
  void add(Matrix<const float> outputs, std::span<const std::int32_t> classes, std::span<double> state) const {
    if (k < 1) throw ConfigError{text("metric::TopK has k = ", k, "; expected 1 or more")};
    for (Index r = 0; r < outputs.rows; ++r) {
      const std::span<const float> row{outputs.row(r), as_size(outputs.cols)};
      const float own = row[as_size(classes[as_size(r)])];
      const auto larger = std::ranges::count_if(row, [own](float output) { return output > own; });
      if (!is_nan(own) && larger < k) ++state[0];
    }
    state[1] += as_double(outputs.rows);
  }
  [[nodiscard]] double result(std::span<const double> state) const { return ratio(state[0], state[1]); }
};

/// The fraction of rows that have the largest output at their class; among equal outputs the first one counts.
struct Accuracy {
  static constexpr bool higher_is_better = true;

  [[nodiscard]] std::string name() const { return "accuracy"; }
  [[nodiscard]] Index state_size(Index) const { return 2; }  // rows that are right, all rows
  void add(Matrix<const float> outputs, std::span<const std::int32_t> classes, std::span<double> state) const {
    for (Index r = 0; r < outputs.rows; ++r)
      if (largest(outputs, r) == classes[as_size(r)]) ++state[0];
    state[1] += as_double(outputs.rows);
  }
  [[nodiscard]] double result(std::span<const double> state) const { return ratio(state[0], state[1]); }

  /// Returns the number of a row's largest output, or -1 if one is NaN.
  [[nodiscard]] static Index largest(Matrix<const float> outputs, Index row) {
    const std::span<const float> values{outputs.row(row), as_size(outputs.cols)};
    if (std::ranges::any_of(values, [](float output) { return is_nan(output); })) return -1;
    return std::ranges::max_element(values) - values.begin();
  }
};

/// The numbers of rows by their class and by the class with the largest output: `outputs` x `outputs` numbers, a row for each true class.
/// Rows with an output that is NaN are left out.
struct ConfusionMatrix {
  [[nodiscard]] std::string name() const { return "confusion matrix"; }
  [[nodiscard]] Index state_size(Index outputs) const { return outputs * outputs; }
  void add(Matrix<const float> outputs, std::span<const std::int32_t> classes, std::span<double> state) const {
    for (Index r = 0; r < outputs.rows; ++r) {
      const Index found = Accuracy::largest(outputs, r);
      if (found >= 0) ++state[as_size(classes[as_size(r)] * outputs.cols + found)];
    }
  }
  [[nodiscard]] std::vector<double> result(std::span<const double> state) const { return {state.begin(), state.end()}; }
};

static_assert(Metric<TopK> && Metric<Accuracy> && Metric<ConfusionMatrix>);

}  // namespace pdp::metric
