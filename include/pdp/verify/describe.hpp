#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/precision.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// The workload for which plans are described.
struct Workload {
  Index global_batch = 0;
  std::size_t state_fields = 0;  // numbers that the optimizer keeps for each parameter
  bool common_memory = false;    // the ranks see each other's memory, so units with Sharding::state need no messages
  ElementBytes bytes = element_bytes<Float32>;
};

/// Memory, messages and idle time of one rank, from its plan. Memory is in bytes, as an Engine allocates it. It includes neither a device's
/// copies of inputs nor the buffers that exchange divided logits. Messages and idle time are those of one step.
struct RankUse {
  std::vector<std::pair<int, int>> layers;  // [first, last), in order
  Index rows = 0;                           // of the rank's largest share of a batch
  Index parameters = 0, gradients = 0, optimizer_state = 0, activations = 0;
  int calls = 0;         // messages that the rank sends, and collectives
  Index sent = 0;        // bytes; for a collective, those of the best algorithm for large counts
  double idle = 0;       // fraction of the step's time, if layers take the time that cost() returns and messages take none
  Index checkpoint = 0;  // most bytes of the rank's part of a checkpoint, and of the copy from which it is written in the background
};

/// The use of all ranks, for one model and one size of batch.
struct Description {
  Index parameters = 0;  // elements of the model, padding included
  Index global_batch = 0;
  std::vector<RankUse> ranks;
  std::string device;  // the computing device, in words

  /// Returns the mean of the ranks' idle fractions.
  [[nodiscard]] double bubble() const {
    double idle = 0;
    for (const RankUse& rank : ranks) idle += rank.idle;
    return ranks.empty() ? 0 : idle / static_cast<double>(ranks.size());
  }
  /// Returns a table with a line for each rank.
  [[nodiscard]] std::string text() const;
};

namespace detail {

/// Returns a size in words: "59 B", "1.2 KiB", "345 MiB".
[[nodiscard]] std::string byte_text(Index bytes);
/// Returns the layers of a rank in words: "0 to 3, 6", or "none".
[[nodiscard]] std::string layers_text(const RankUse& use);

}  // namespace detail

/// Describes each rank from the plans alone, without starting any rank. Throws PlanError if the plans are not sound.
[[nodiscard]] Description describe(const Outline& model, const std::vector<Plan>& plans, const Workload& work);

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/verify/source/describe.hpp>
#endif
