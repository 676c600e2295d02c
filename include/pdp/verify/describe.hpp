#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/precision.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// What plans are carried out for.
struct Workload {
  Index global_batch = 0;
  std::size_t state_fields = 0;  // numbers that the optimizer keeps for each parameter
  bool common_memory = false;    // the ranks see each other's, and send nothing of what lies there
  ElementBytes bytes = element_bytes<Float32>;
};

/// What one rank holds, sends and waits for, by its plan. Memory is in bytes, and what an Engine makes, without what comes and goes
/// with a batch on a device: copies of inputs, and what ranks tell each other of divided logits. All else is of one step.
struct RankUse {
  std::vector<std::pair<int, int>> layers;  // [first, last), in order
  Index rows = 0;                           // of the largest step
  Index parameters = 0, gradients = 0, optimizer_state = 0, activations = 0;
  int calls = 0;    // messages it sends, and collectives
  Index sent = 0;   // bytes: of a collective what the best algorithm for large counts sends
  double idle = 0;  // of the step's time, where computing takes what cost() says and messages take no time
};

struct Description {
  Index parameters = 0;  // elements of the model, padding included
  Index global_batch = 0;
  std::vector<RankUse> ranks;
  std::string device;  // what computes, in words

  [[nodiscard]] double bubble() const {
    double idle = 0;
    for (const RankUse& rank : ranks) idle += rank.idle;
    return ranks.empty() ? 0 : idle / static_cast<double>(ranks.size());
  }
  /// A table with a line for each rank.
  [[nodiscard]] std::string text() const;
};

/// What each rank holds and does, from the plans alone: no rank is started. Throws PlanError where the plans are not sound.
[[nodiscard]] Description describe(const Outline& model, const std::vector<Plan>& plans, const Workload& work);

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#endif
