#pragma once

#include <string>

#include <pdp/pdp.hpp>

namespace examples {

/// Prints what each rank of the world would hold, send and wait for. `device`: what --device names.
template <class World, class TaskType, pdp::strategy::Strategy S>
void print_plan(const World& world, const std::string& device, const TaskType& task, const S& strategy,
                const pdp::TrainerOptions& options) {
  if (device == "cpu") return pdp::print(world, "{}", pdp::describe(task, strategy, world, options).text());
  auto planned = pdp::describe(task, strategy, world.size(), options);  // the world has no GPUs, as a plan needs none
  planned.device = "a GPU for each rank";
  pdp::print(world, "{}", planned.text());
}

}  // namespace examples
