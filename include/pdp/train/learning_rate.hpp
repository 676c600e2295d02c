#pragma once

#include <concepts>
#include <cstdint>

#include <pdp/train/task.hpp>

namespace pdp::detail {

/// Whether the optimizer of a task has a learning rate as member `lr`.
template <class TaskType>
constexpr bool has_learning_rate = requires(const TaskType& task) {
  { task.optimizer.lr } -> std::convertible_to<double>;
};

/// Returns the learning rate of a step, multiplied by `rate_factor`; for an optimizer without a member `lr`, the product of the factors.
template <class TaskType>
[[nodiscard]] double learning_rate_of(const TaskType& task, std::int64_t step, double rate_factor) {
  const double factor = rate_factor * static_cast<double>(task.schedule.factor(step));
  if constexpr (has_learning_rate<TaskType>)
    return factor * static_cast<double>(task.optimizer.lr);
  else
    return factor;
}

}  // namespace pdp::detail
