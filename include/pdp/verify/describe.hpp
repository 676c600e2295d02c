#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/precision.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer_info.hpp>
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
  Index mapped = 0;      // bytes of other ranks' memory that the rank reads or writes directly

  /// Returns the bytes that the rank holds.
  [[nodiscard]] Index memory() const { return parameters + gradients + optimizer_state + activations; }
};

/// A machine that runs some of the ranks.
struct Machine {
  Index memory = 0;               // bytes that its ranks may use; 0: not known
  int first_rank = 0, ranks = 0;  // those that it runs are first_rank, first_rank + 1 and so on
};

/// The use of all ranks, for one model and one size of batch.
struct Description {
  Index parameters = 0;  // elements of the whole model: without padding if `layers` are known, else with padding
  Index global_batch = 0;
  std::vector<RankUse> ranks;
  std::string device;                   // the computing device, in words
  std::vector<nn::LayerInfo> layers{};  // of the model, as a rank holds them; empty: not known
  Machine machine{};                    // the one that computes the description, if all ranks are known to run on it

  /// Returns the mean of the ranks' idle fractions.
  [[nodiscard]] double bubble() const {
    double idle = 0;
    for (const RankUse& rank : ranks) idle += rank.idle;
    return ranks.empty() ? 0 : idle / static_cast<double>(ranks.size());
  }
  /// Returns the sums over all ranks, in which memory that several ranks map counts once. Leaves out layers, rows and idle time.
  [[nodiscard]] RankUse total() const;
  /// Returns a sentence if the ranks of `machine` need more memory than it has, else an empty string.
  [[nodiscard]] std::string warning() const;
  /// Returns a table with a line for each rank, the totals, the names of layers, and the warning.
  [[nodiscard]] std::string text() const;
};

namespace detail {

/// Returns a size in words: "59 B", "1.2 KiB", "345 MiB".
[[nodiscard]] std::string byte_text(Index bytes);
/// Returns the layers of a rank in words: "0 to 3, 6", or "none".
[[nodiscard]] std::string layers_text(const RankUse& use);
/// Returns a line for each set of layers that ranks hold: their number of parameters and their names, of which long lists are shortened.
[[nodiscard]] std::vector<std::string> layer_lines(const Description& description);
/// Returns a sentence about the memory that ranks share; empty if they share none.
[[nodiscard]] std::string mapped_text(const Description& description);
/// Returns a table in words, with aligned columns. `left`: the first columns that are aligned to the left.
[[nodiscard]] std::string table_text(const std::vector<std::vector<std::string>>& rows, std::size_t left = 0);

}  // namespace detail

/// Describes each rank from the plans alone, without starting any rank. `layers`: of the model, from nn::layer_infos(). Throws PlanError if
/// the plans are not sound.
[[nodiscard]] Description describe(const Outline& model, const std::vector<Plan>& plans, const Workload& work,
                                   std::vector<nn::LayerInfo> layers = {});

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/verify/source/describe.hpp>
#endif
