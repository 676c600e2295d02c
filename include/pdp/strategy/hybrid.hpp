#pragma once

#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/exchanges.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/divides.hpp>
#include <pdp/strategy/mesh.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/strategy_ref.hpp>

namespace pdp::strategy {

namespace detail {

/// Returns a pipeline's plan for one of several replicas. The gradients of each unit are summed over the replicas as soon as they are
/// complete, before the update. The setup broadcasts the parameters of replica 0.
constexpr Plan with_replicas(Plan plan, data::Shard share, int group) {
  plan.share = share;
  for (Unit& unit : plan.units) unit.group = group;
  const int units = as_int(plan.units.size());
  for (int u = 0; u < units; ++u) plan.setup.push_back(on_unit(Op::broadcast, u, group, 0));

  // Returns the index of the instruction that computes a unit's last gradient; -1: none is computed, or the unit is frozen.
  const auto last_backward_weight = [&](int unit) {
    const Unit& own = plan.units[as_size(unit)];
    int found = -1;
    bool is_updated = false;
    for (int at = 0; at < as_int(plan.step.size()); ++at) {
      const Instruction& i = plan.step[as_size(at)];
      if (computes_parameter_gradients(i, own.first, own.last)) found = at;
      is_updated = is_updated || (i.op == Op::update && i.unit == unit);
    }
    return is_updated ? found : -1;
  };
  std::vector<int> ends;
  for (int u = 0; u < units; ++u) ends.push_back(last_backward_weight(u));

  Instructions list;
  for (int at = 0; at < as_int(plan.step.size()); ++at) {
    const Instruction& i = plan.step[as_size(at)];
    const bool updates = i.op == Op::update;
    const bool never = updates && ends[as_size(i.unit)] < 0;  // no gradient is computed, but all ranks make the same calls
    if (never) list.push_back(on_unit(Op::reduce_start, i.unit, group));
    if (updates) list.push_back(on_unit(Op::reduce_wait, i.unit, group));
    list.push_back(i);
    for (int u = 0; u < units; ++u)
      if (ends[as_size(u)] == at) list.push_back(on_unit(Op::reduce_start, u, group));
  }
  plan.step = std::move(list);
  return plan;
}

/// Moves a plan for a whole world to one axis of a mesh: messages and units use the group of that axis instead of the world. Counts and
/// totals still use the world.
constexpr Plan along(Plan plan, int group) {
  for (Instructions* list : {&plan.setup, &plan.step, &plan.evaluate})
    for (Instruction& i : *list)
      if (is_between_ranks_of_a_strategy(i.op)) i.group = plan::detail::numbered(group, "group");
  for (Unit& unit : plan.units)
    if (unit.group >= 0) unit.group = group;
  return plan;
}

}  // namespace detail

/// Data, pipeline and tensor parallelism combined, one on each axis of a mesh. Layers are divided over the tensor axis and cut into stages
/// along the pipeline axis. Along the data axis there is one replica of all stages for each share of a batch. Narayanan et al., "Efficient
/// large-scale language model training on GPU clusters using Megatron-LM", SC 2021.
template <Schedule S = OneForwardOneBackward>
struct Hybrid {
  Mesh mesh{};
  int micro_batches = 1;           // of a rank's share of a batch
  S schedule{};                    // of the pipeline; without a pipeline, micro-batches run one after another, as in DataParallel
  Cuts cuts{};                     // in layers of nn::Divided, which counts each exchange as a layer
  bool recompute = false;          // see Pipeline; used if there is a pipeline
  int join_weights = 1;            // see Pipeline; used if there is a pipeline
  Index unit_elements = 8 * 1024;  // see DataParallel; used if there is no pipeline

  /// Returns a rank's part of the divided layers. Throws ConfigError if the mesh does not fit the world.
  [[nodiscard]] constexpr nn::Part part(RankInWorld at) const {
    mesh.check(at.size);
    return {mesh.coordinates(at.rank).tensor, mesh.tensor};
  }
  /// `model`: the outline of the divided model. Throws ConfigError if the mesh does not fit the world, or if an option is not valid for the
  /// mesh.
  [[nodiscard]] constexpr Plan plan(const Outline& model, RankInWorld at) const {
    mesh.check(at.size);
    check_layers(model);
    check_micro_batches("micro_batches", micro_batches);
    check_micro_batches("join_weights", join_weights);
    if (mesh.pipeline == 1 && !cuts.empty())
      throw ConfigError{text("cuts were given, but the mesh has no pipeline; give it .pipeline = ", cuts.size() + 1)};
    return with_exchanges(model, undivided_plan(model, at), part(at), Mesh::tensor_group);
  }

 private:
  /// Returns the plan without the exchanges of divided layers.
  [[nodiscard]] constexpr Plan undivided_plan(const Outline& model, RankInWorld at) const {
    const Mesh::Coordinates own = mesh.coordinates(at.rank);
    Plan plan = data_and_pipeline(model, {own.data, mesh.data}, {own.pipeline, mesh.pipeline});
    plan.groups = mesh.groups(at.rank);
    return plan;
  }
  [[nodiscard]] constexpr Plan data_and_pipeline(const Outline& model, data::Shard share, RankInWorld stage) const {
    if (mesh.pipeline == 1)
      return detail::along(
          DataParallel{.accumulate = micro_batches, .unit_elements = unit_elements}.plan(model, {share.index, share.count}),
          Mesh::data_group);
    return detail::with_replicas(detail::along(pipeline().plan(model, stage), Mesh::pipeline_group), share, Mesh::data_group);
  }
  [[nodiscard]] constexpr Pipeline<S> pipeline() const {
    return {.micro_batches = micro_batches, .schedule = schedule, .cuts = cuts, .recompute = recompute, .join_weights = join_weights};
  }
};

static_assert(Divides<Hybrid<>>);

#ifdef PDP_SEPARATE_CORE
extern template Plan detail::plan_of<Hybrid<>>(const void*, const Outline&, RankInWorld);
extern template Plan detail::plan_of<Hybrid<GPipe>>(const void*, const Outline&, RankInWorld);
extern template Plan detail::plan_of<Hybrid<Interleaved>>(const void*, const Outline&, RankInWorld);
extern template Plan detail::plan_of<Hybrid<ZeroBubble>>(const void*, const Outline&, RankInWorld);
#endif

}  // namespace pdp::strategy
