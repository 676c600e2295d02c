#pragma once

/// Definitions for pdp/report/record.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/report/curve.hpp>
#include <pdp/report/record.hpp>

namespace pdp::report {

PDP_INLINE void Record::step(std::int64_t number, const StepNumbers& numbers) {
  if (steps_ == 0) first_ = number;
  last_ = number;
  if (steps_++ == slow_steps_) {
    times_.clear();
    counted_rows_ = 0;
  }
  times_.add(numbers.seconds);
  counted_rows_ += numbers.rows;
  loss.add(number, numbers.loss);
  accuracy.add(number, numbers.accuracy);
  rate.add(number, numbers.rate);
  gradient_norm.add(number, numbers.gradient_norm);
  rows.add(number, numbers.rows);
  seconds.add(number, numbers.seconds);
}

PDP_INLINE void Record::epoch(const EpochNumbers& epoch) {
  epoch_loss.add(epoch.number, epoch.loss);
  epoch_accuracy.add(epoch.number, epoch.accuracy);
  epoch_seconds.add(epoch.number, epoch.seconds);
}

PDP_INLINE void Record::metric(std::string_view name, double value) {
  auto found = std::ranges::find_if(metrics_, [name](const Metric& metric) { return metric.name == name; });
  if (found == metrics_.end()) {
    if (metrics_.size() == most_metrics)
      throw ConfigError{text("a report has at most ", most_metrics, " metrics; ", in_quotes(name), " would be one more")};
    found = metrics_.insert(metrics_.end(), {std::string{name}, Curve{200}});
  }
  found->values.add(last_, value);
}

PDP_INLINE double Record::throughput() const {
  const double all = times_.mean() * static_cast<double>(times_.count());
  return all > 0 ? counted_rows_ / all : 0;
}

}  // namespace pdp::report
