#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/copyable.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>

namespace pdp::metric {

/// Whether a metric takes targets of this element type.
template <class M, class Target>
concept Takes = requires(const M& metric, Matrix<const float> outputs, std::span<const Target> targets, std::span<double> state) {
  metric.add(outputs, targets, state);
};

/// A measure of a model's outputs on a dataset, beside the loss. A metric is a value without state of its own. It works on
/// state_size(outputs) doubles, which begin as 0; `outputs`: number of a model's outputs.
///
/// add(outputs, targets, state) counts some rows: outputs [rows, outputs], targets [rows, target elements], both in host memory.
/// result(state) returns the metric over all rows that were counted: a double, or several as a std::vector<double>.
///
/// An optional member merge(state, other) adds the rows that another rank has counted to `state`. Without it, the doubles of all ranks are
/// added. The ranks are merged in their order, so all ranks get the same bits. An optional constant `higher_is_better` is false if it is
/// missing.
template <class M>
concept Metric = Copyable<M> &&
    (Takes<M, std::int32_t> || Takes<M, float>)&&requires(const M& metric, Index outputs, std::span<const double> state) {
  { metric.name() } -> std::convertible_to<std::string>;
  { metric.state_size(outputs) } -> std::same_as<Index>;
  requires std::convertible_to<decltype(metric.result(state)), double> ||
      std::convertible_to<decltype(metric.result(state)), std::vector<double>>;
};

/// A metric that merges the numbers of two ranks itself. Those of others are added.
template <class M>
concept Merges = requires(const M& metric, std::span<double> state, std::span<const double> other) {
  metric.merge(state, other);
};

/// Returns sum / count, or NaN if nothing was counted.
[[nodiscard]] inline double ratio(double sum, double count) { return count > 0 ? sum / count : not_a_number<double>(); }

}  // namespace pdp::metric
