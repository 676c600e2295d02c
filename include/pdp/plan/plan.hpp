#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::plan {

using nn::Outline;

/// Where a plan is for. No communicator is needed to make one.
struct RankInWorld {
  int rank = 0;
  int size = 1;
};
/// The short name that users write.
using Place = RankInWorld;

/// Of what each rank of a unit's group keeps a slice only: of nothing, of the optimizer's state, of the gradients too, of the parameters
/// too.
enum class Sharding : std::uint8_t { none, state, gradients, parameters };

/// A run of layers whose parameters, and whose gradients, lie in one piece: what is reduced, updated, gathered and broadcast at once.
struct Unit {
  int first = 0;
  int last = 0;
  int group = -1;  // whose ranks share the parameters and sum their gradients; -1: this rank alone
  Sharding sharding = Sharding::none;
  int slices = 1, slice = 0;  // ranks of the group, and which of them this is, where the unit is sharded
  int buffer = 0;             // where the whole of what this rank keeps a slice of lies while it is needed
};

/// A group beside the world, as in split(color, key).
struct GroupSpec {
  int color = 0;
  int key = 0;
};

/// What one rank holds and does.
struct Plan {
  data::Shard share{};                       // of each global batch
  nn::Part tensor{};                         // of each layer that is divided over a tensor-parallel group
  int tensor_group = 0;                      // which one that is
  int micro_batches = 1;                     // that a step cuts its share into; the last ones may be short or empty
  std::vector<Unit> units{};                 // in the order in which backward finishes them; the parameters that this rank holds
  std::vector<GroupSpec> groups{};           // number 1, 2, ...; number 0 is the world
  Instructions setup{}, step{}, evaluate{};  // evaluate: forward and loss of one micro-batch
};

/// Returns the rows of a full micro-batch, where a rank's share of a step has so many.
constexpr Index micro_batch_rows(const Plan& plan, Index rows) { return (rows + plan.micro_batches - 1) / plan.micro_batches; }

/// The ranks of the world that are in a group of one of them, in the group's order. `plans`: of all ranks.
constexpr std::vector<int> members(const std::vector<Plan>& plans, int rank, int group) {
  std::vector<std::pair<int, int>> found;
  for (int other = 0; other < as_int(plans.size()); ++other) {
    const auto &mine = plans[as_size(rank)].groups, &theirs = plans[as_size(other)].groups;
    const auto number = as_size(group) - 1;
    if (group == 0)
      found.emplace_back(0, other);
    else if (number < theirs.size() && theirs[number].color == mine[number].color)
      found.emplace_back(theirs[number].key, other);
  }
  std::sort(found.begin(), found.end());
  std::vector<int> ranks;
  for (const auto& [key, other] : found) ranks.push_back(other);
  return ranks;
}

/// Cuts layers [first, last) in units of at least `elements` parameters, from the last layer to the first. `early`: of the first unit,
/// where it is to be smaller; 0: like the others.
constexpr std::vector<Unit> units_by_size(const Outline& model, int first, int last, Index elements, int group = -1, Index early = 0) {
  std::vector<Unit> units;
  int end = last;
  Index gathered = 0;
  for (int layer = last - 1; layer >= first; --layer) {
    gathered += model.layers[as_size(layer)].parameters;
    if (gathered >= (units.empty() && early > 0 ? early : elements) || layer == first) {
      units.push_back({layer, end, group});
      end = layer;
      gathered = 0;
    }
  }
  return units;
}

/// Backward of layers [first, last), each layer's two halves together, from the last to the first.
constexpr void append_backward(Instructions& list, int micro_batch, int first, int last, bool accumulate) {
  for (int layer = last - 1; layer >= first; --layer) {
    list.push_back(compute(Op::backward_input, micro_batch, layer, layer + 1));
    list.push_back(compute(Op::backward_weight, micro_batch, layer, layer + 1, accumulate));
  }
}

/// Throws ConfigError if an option asks for no micro-batch, or for more than a plan can number. `option`: its name.
constexpr void check_micro_batches(const char* option, int micro_batches) {
  if (micro_batches < 1 || micro_batches > most_numbered)
    throw ConfigError{text(option, " = ", micro_batches, " was given; it takes 1 to ", most_numbered, " micro-batches")};
}
constexpr void check_accumulate(int accumulate) { check_micro_batches("accumulate", accumulate); }

/// Throws ConfigError if a model has more layers than a plan can number.
constexpr void check_layers(const Outline& model) {
  if (model.size() > most_numbered)
    throw ConfigError{text("the model has ", model.size(), " layers; a plan takes at most ", most_numbered,
                           ", so put several layers into one of your own")};
}

}  // namespace pdp::plan
