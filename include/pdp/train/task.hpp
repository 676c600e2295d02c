#pragma once

#include <pdp/nn/block.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/optim/schedule.hpp>

namespace pdp {

/// What is to be learnt, and how: a literal, whatever it is spread over.
template <class Model, class Loss, class Optimizer, class Schedule = optim::Constant>
struct Task {
  static_assert(nn::Block<Model>,
                "pdp: the first member of a Task must be a model: a layer, or a container of layers such as nn::Sequential");
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
