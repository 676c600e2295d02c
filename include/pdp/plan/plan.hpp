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

/// The rank that a plan is for, and the size of its world. Making a plan needs no communicator.
struct RankInWorld {
  int rank = 0;
  int size = 1;
};
/// A shorter name for users.
using Place = RankInWorld;

/// The data of a unit that the ranks of its group shard: nothing, the optimizer state (ZeRO-1), also the gradients (ZeRO-2), also the
/// parameters (ZeRO-3).
enum class Sharding : std::uint8_t { none, state, gradients, parameters };

/// A run of layers whose parameters lie in one piece of memory, and their gradients in another. It is reduced, updated, gathered and
/// broadcast as a whole.
struct Unit {
  int first = 0;
  int last = 0;
  int group = -1;  // its ranks share the parameters and sum their gradients; -1: this rank alone
  Sharding sharding = Sharding::none;
  int slices = 1, slice = 0;  // if sharded: number of ranks in the group, and this rank's index among them
  int buffer = 0;             // if this rank keeps only a slice: the buffer that holds the whole unit while it is needed
};

/// Returns whether no parameter of a unit is trained, so that it needs no reduction and no update.
constexpr bool is_frozen(const Outline& model, const Unit& unit) { return model.is_frozen(unit.first, unit.last); }

/// A group other than the world, as the arguments of split(color, key).
struct GroupSpec {
  int color = 0;
  int key = 0;
};

/// The data, parameters and instructions of one rank.
struct Plan {
  data::Shard share{};                       // this rank's share of each global batch
  nn::Part tensor{};                         // this rank's part of each layer that is divided over a tensor-parallel group
  int tensor_group = 0;                      // the number of that group
  int tied_group = -1;                       // that of the group which sums gradients of tied layers (plan/ties.hpp); -1: none
  int micro_batches = 1;                     // of this rank's share of a step; the last ones may be short or empty
  std::vector<Unit> units{};                 // the parameters that this rank holds, in the order in which backward finishes them
  std::vector<GroupSpec> groups{};           // numbered from 1; number 0 is the world
  Instructions setup{}, step{}, evaluate{};  // evaluate: forward and loss of one micro-batch
};

/// Returns the rows of a full micro-batch if a rank's share of a step has `rows` rows.
constexpr Index micro_batch_rows(const Plan& plan, Index rows) { return (rows + plan.micro_batches - 1) / plan.micro_batches; }

/// Returns the members of a group of `rank` as ranks of the world, in the order of the group. `plans`: the plans of all ranks.
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

/// Cuts layers [first, last) into units of at least `elements` parameters, from the last layer to the first. The last unit may be smaller.
/// Successive frozen layers with at least `elements` parameters, or 1024 if that is less, have units of their own, and so has each layer
/// that shares its parameter. `early`: the minimum for the first unit, if not 0.
constexpr std::vector<Unit> units_by_size(const Outline& model, int first, int last, Index elements, int group = -1, Index early = 0) {
  // Layers of different sections are in different units.
  enum class Section : std::uint8_t { other, frozen, first_tied, last_tied };
  const auto section_of = [&](int layer) {
    if (model.is_tied(layer)) return layer == 0 ? Section::first_tied : Section::last_tied;
    int begin = layer, end = layer + 1;
    if (!model.is_frozen(begin, end)) return Section::other;
    while (begin > first && !model.trains(begin - 1)) --begin;
    while (end < last && !model.trains(end)) ++end;
    return model.elements(begin, end) >= std::min<Index>(elements, 1024) ? Section::frozen : Section::other;
  };
  std::vector<Unit> units;
  int end = last;
  Index gathered = 0;
  Section section = Section::other;  // of the layers in the unit
  for (int layer = last - 1; layer >= first; --layer) {
    if (model.elements(layer, layer + 1) > 0) {
      const Section before = std::exchange(section, section_of(layer));
      if (gathered > 0 && section != before) {
        units.push_back({layer + 1, end, group});
        end = layer + 1;
        gathered = 0;
      }
    }
    gathered += model.layers[as_size(layer)].parameters;
    if (gathered >= (units.empty() && early > 0 ? early : elements) || layer == first) {
      units.push_back({layer, end, group});
      end = layer;
      gathered = 0;
    }
  }
  return units;
}

/// Appends backward of layers [first, last), from the last layer to the first, the two halves of each layer together. Halves that have
/// nothing to compute, such as those of frozen layers before which nothing is trained, cost nothing.
constexpr void append_backward(Instructions& list, int micro_batch, int first, int last, bool accumulate) {
  for (int layer = last - 1; layer >= first; --layer) {
    list.push_back(compute(Op::backward_input, micro_batch, layer, layer + 1));
    list.push_back(compute(Op::backward_weight, micro_batch, layer, layer + 1, accumulate));
  }
}

/// Throws ConfigError if `micro_batches` is less than 1 or more than a plan can number. `option`: its name in the message.
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
