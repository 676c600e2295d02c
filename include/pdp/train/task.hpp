#pragma once

#include <pdp/nn/placement.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/optim/schedule.hpp>

namespace pdp {

/// What is to be learnt, and how: a literal, whatever it is spread over.
template <class Model, class Loss, class Optimizer, class Schedule = optim::Constant>
struct Task {
  static_assert(nn::Block<Model>,
                "pdp: the first member of a Task must be a model: a layer, or a container of layers such as nn::Sequential");
  static_assert(
      nn::begins_and_ends_whole<Model>(),
      "pdp: the model begins with a layer that does not take a batch as it comes (put nn::Replicate before nn::ColumnParallel), or "
      "ends in an output that no loss can take (put nn::AllReduce behind nn::RowParallel)");
  static_assert(optim::Optimizer<Optimizer>, "pdp: the third member of a Task must be an optimizer (see optim/optimizer.hpp)");
  static_assert(optim::Schedule<Schedule>, "pdp: the fourth member of a Task must be a learning-rate schedule (see optim/schedule.hpp)");

  Model model;
  Loss loss;
  Optimizer optimizer;
  Schedule schedule{};
};
template <class Model, class Loss, class Optimizer>
Task(Model, Loss, Optimizer) -> Task<Model, Loss, Optimizer>;
template <class Model, class Loss, class Optimizer, class Schedule>
Task(Model, Loss, Optimizer, Schedule) -> Task<Model, Loss, Optimizer, Schedule>;

}  // namespace pdp
