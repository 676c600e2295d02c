#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/report/curve.hpp>
#include <pdp/report/sample.hpp>

namespace pdp::report {

/// The numbers of one step. NaN: unknown.
struct StepNumbers {
  double loss = not_a_number<double>();
  double accuracy = not_a_number<double>();
  double rate = not_a_number<double>();  // learning rate
  double gradient_norm = 0;              // 0: not computed
  double rows = 0;                       // samples of all ranks
  double seconds = 0;
};

/// The numbers of one epoch.
struct EpochNumbers {
  std::int64_t number = 0;
  double loss = 0, accuracy = 0, seconds = 0;
};

/// The course of a training. Its memory does not grow with the number of steps, and a step allocates none.
class Record {
 public:
  /// A number that the program measures from time to time.
  struct Metric {
    std::string name;
    Curve values;
  };
  static constexpr std::size_t most_metrics = 16;

  /// `slow_steps`: the first steps, which are traced. They are left out of the statistics of times if there are more steps.
  explicit Record(Index slow_steps = 0) : slow_steps_{slow_steps} {}

  /// Adds a step. The numbers of steps increase.
  void step(std::int64_t number, const StepNumbers& numbers);
  void epoch(const EpochNumbers& epoch);
  /// Adds a value of a metric at the last step. Throws ConfigError for a new name if there are most_metrics already.
  void metric(std::string_view name, double value);

  [[nodiscard]] Index steps() const { return steps_; }
  [[nodiscard]] std::int64_t first_step() const { return first_; }
  [[nodiscard]] std::int64_t last_step() const { return last_; }
  [[nodiscard]] const Sample& times() const { return times_; }
  /// Returns the samples per second over the steps whose times count.
  [[nodiscard]] double throughput() const;
  [[nodiscard]] const std::vector<Metric>& metrics() const { return metrics_; }

  /// The curves over steps have the same buckets.
  Curve loss{}, accuracy{}, rate{}, gradient_norm{}, rows{}, seconds{};
  Curve epoch_loss{200}, epoch_accuracy{200}, epoch_seconds{200};  // over epochs

 private:
  Index slow_steps_;
  Index steps_ = 0;
  std::int64_t first_ = 0, last_ = 0;
  Sample times_{};
  double counted_rows_ = 0;
  std::vector<Metric> metrics_{};
};

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/record.hpp>
#endif
