#pragma once

#include <pdp/nn/layer_requirements.hpp>
#include <pdp/nn/placement.hpp>
#include <pdp/optim/requirements.hpp>

namespace pdp {

/// A training task: model, loss, optimizer and learning-rate schedule. It is a literal, independent of the number of ranks and the
/// strategy.
template <class Model, class Loss, class Optimizer, class Schedule = optim::Constant>
struct Task {
  static_assert(nn::detail::is_or_resembles_block<Model>,
                "pdp: the first member of a Task must be a model: a layer, or a container of layers such as nn::Sequential");
  static_assert(
      [] {
        if constexpr (nn::Block<Model>) return nn::begins_and_ends_whole<Model>();
        return true;
      }(),
      "pdp: the model begins with a layer that cannot take the batch directly (put nn::Replicate before nn::ColumnParallel), or "
      "ends in an output that no loss can take (put nn::AllReduce behind nn::RowParallel and the like)");
  static_assert(optim::Optimizer<Optimizer> || optim::detail::OptimizerRequirements<Optimizer>::resembles,
                "pdp: the third member of a Task must be an optimizer (see optim/optimizer.hpp)");
  static_assert(optim::Schedule<Schedule> || optim::detail::ScheduleRequirements<Schedule>::resembles,
                "pdp: the fourth member of a Task must be a learning-rate schedule (see optim/schedule.hpp)");

  Model model;
  Loss loss;
  Optimizer optimizer;
  Schedule schedule{};
};
namespace detail {
/// The type of a member that a Task lacks.
struct Missing {};
}  // namespace detail

template <class Model>
Task(Model) -> Task<Model, detail::Missing, detail::Missing>;
template <class Model, class Loss>
Task(Model, Loss) -> Task<Model, Loss, detail::Missing>;
template <class Model, class Loss, class Optimizer>
Task(Model, Loss, Optimizer) -> Task<Model, Loss, Optimizer>;
template <class Model, class Loss, class Optimizer, class Schedule>
Task(Model, Loss, Optimizer, Schedule) -> Task<Model, Loss, Optimizer, Schedule>;

}  // namespace pdp
