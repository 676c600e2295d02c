#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/strategy/strategy.hpp>
#include <pdp/verify/rehearsal.hpp>

namespace pdp::plan {

/// Checks the plans of all ranks together, before anything runs. In sound plans every send has its receive, no ranks wait for each other in
/// a cycle, and the collectives of a group have the same order on all its ranks. No value is used before it is there. No gradient is
/// forgotten, applied twice, or changed while in flight.
constexpr Verdict verify(const Outline& model, const std::vector<Plan>& plans) {
  const auto run = [&](Instructions Plan::*list, const char* name, bool training) {
    Verdict verdict = detail::Rehearsal{model, plans, list, training}.run();
    if (verdict.list != std::string_view{"units"} && verdict.list != std::string_view{"plan"}) verdict.list = name;
    return verdict;
  };
  for (std::size_t rank = 0; rank < plans.size(); ++rank)
    if (plans[rank].micro_batches < 1) return {Fault::order, "has no micro-batch", "plan", {as_int(rank), -1, -1}};
  if (const Verdict verdict = run(&Plan::setup, "setup", false); !verdict) return verdict;
  if (const Verdict verdict = run(&Plan::evaluate, "evaluate", false); !verdict) return verdict;
  return run(&Plan::step, "step", true);
}

/// Returns for each rank the fraction of a step in which it does not compute, if layers take the time that cost() returns and messages take
/// none. The plans must be sound.
constexpr std::vector<double> idle_of(const Outline& model, const std::vector<Plan>& plans) {
  detail::Rehearsal step{model, plans, &Plan::step, true};
  step.run();
  return step.idle();
}

/// Checks one rank's plan by itself: it may name only units, layers, micro-batches and groups that exist. Unlike verify(), it compares
/// nothing between ranks. The cost does not depend on the size of the world.
constexpr Verdict verify_numbers(const Outline& model, const Plan& plan, int rank) {
  const auto fault = [rank](const char* list, std::size_t at, const char* reason) {
    return Verdict{Fault::order, reason, list, {rank, as_int(at), -1}};
  };
  const int units = as_int(plan.units.size()), groups = as_int(plan.groups.size()), layers = model.size();
  if (plan.micro_batches < 1) return fault("plan", 0, "has no micro-batch");
  if (plan.share.count < 1 || plan.share.index < 0 || plan.share.index >= plan.share.count)
    return fault("plan", 0, "takes a share of the batch that does not exist");
  if (plan.tensor_group < 0 || plan.tensor_group > groups) return fault("plan", 0, "names a group that the plan does not have");
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const Unit& unit = plan.units[u];
    if (unit.first < 0 || unit.first >= unit.last || unit.last > layers)
      return fault("units", u, "holds layers that the model does not have");
    if (unit.group < -1 || unit.group > groups) return fault("units", u, "names a group that the plan does not have");
    if (unit.buffer < 0 || unit.slices < 1 || unit.slice < 0 || unit.slice >= unit.slices)
      return fault("units", u, "has a slice or a buffer that does not exist");
  }
  const std::array<std::pair<const char*, const Instructions*>, 3> lists{
      {{"setup", &plan.setup}, {"evaluate", &plan.evaluate}, {"step", &plan.step}}};
  for (const auto& [name, list] : lists) {
    for (std::size_t at = 0; at < list->size(); ++at) {
      const Instruction& i = (*list)[at];
      if (i.group < 0 || i.group > groups) return fault(name, at, "names a group that the plan does not have");
      if (i.micro_batch < 0 || i.micro_batch >= (list == &plan.step ? plan.micro_batches : 1))
        return fault(name, at, "names a micro-batch that the plan does not have");
      if (i.first < 0 || i.first > layers || i.last < 0 || i.last > layers || (computes_layers(i.op) && i.first >= i.last))
        return fault(name, at, "names layers that the model does not have");
      const OpKind kind = info(i.op).kind;
      if ((kind == OpKind::pause || kind == OpKind::pause_sum) &&
          (i.first == layers || i.pause < 0 || i.pause >= model.layers[as_size(i.first)].pauses))
        return fault(name, at, "names a pause that the layer does not have");
      if (kind == OpKind::tied &&
          (!model.is_tied(0) || i.first != 0 || i.last != model.tied_output || unit_of(plan, i.first) < 0 || unit_of(plan, i.last) < 0))
        return fault(name, at, "names layers that do not share a parameter, or that the rank does not hold");
      if (is_of_unit(i.op) && (i.unit < 0 || i.unit >= units)) return fault(name, at, "names a unit that the plan does not have");
    }
  }
  return {};
}

namespace detail {

/// Returns the place of a fault in words: "rank 1, step instruction 7 (send_wait ...)".
inline std::string where(const Verdict::Stuck& stuck, std::string_view name, const Plan& plan) {
  if (name == "plan") return text("rank ", stuck.rank);
  if (name == "units") return text("rank ", stuck.rank, ", unit ", stuck.at, " of its plan,");
  const Instructions& list = name == "setup" ? plan.setup : name == "step" ? plan.step : plan.evaluate;
  if (stuck.at < 0 || stuck.at >= as_int(list.size())) return text("rank ", stuck.rank, " at the end of its ", name);
  return text("rank ", stuck.rank, ", ", name, " instruction ", stuck.at, " (", describe(list[as_size(stuck.at)]), ")");
}

}  // namespace detail

/// Returns what is wrong in words: "the plan cannot run: rank 1, step instruction 7 (send_wait ...) ...". `plans`: the plans that verify()
/// checked.
inline std::string explain(const Verdict& verdict, const std::vector<Plan>& plans) {
  if (verdict) return "the plan is sound";
  const auto where = [&](const Verdict::Stuck& stuck) { return detail::where(stuck, verdict.list, plans[as_size(stuck.rank)]); };
  std::string words = text("the plan cannot run: ", where(verdict.where), " ", verdict.reason);
  for (int each = 0; each < verdict.cycle_length; ++each) {
    const Verdict::Stuck& stuck = verdict.cycle[as_size(each)];
    words += text(each == 0 ? ": " : "; ", where(stuck), " waits for rank ", stuck.waits_for);
  }
  return words;
}

/// Returns the same for a verdict of verify_numbers() on one rank's plan.
inline std::string explain(const Verdict& verdict, const Plan& plan) {
  return verdict ? "the plan is sound"
                 : text("the plan cannot run: ", detail::where(verdict.where, verdict.list, plan), " ", verdict.reason);
}

template <strategy::Strategy S>
/// Verifies the plans that a strategy makes for a world of `ranks` ranks.
constexpr Verdict verify(const S& strategy, const Outline& model, int ranks) {
  return verify(model, strategy::plans(strategy, model, ranks));
}

/// A fault of a plan as a type, so that a compiler's message shows it: the kind of fault, the rank, the number of the instruction in its
/// list, and the rank that it waits for.
template <Fault fault, int rank, int instruction, int waits_for>
struct Finding {
  static constexpr bool is_sound = fault == Fault::none;
  static_assert(is_sound,
                "pdp: a plan cannot run; the arguments of Finding are the fault, the rank, its instruction and the rank that it waits for; "
                "explain() describes them in words");
};

template <auto find>
constexpr Verdict verdict_of = find();

/// Whether find(), a constexpr function that returns a Verdict, finds no fault. For a static_assert, if all sizes are constants:
///
///   static_assert(plan::is_sound<[] { return verify(Pipeline<Mine>{.micro_batches = 8}, nn::outline(model, Shape{784}), 4); }>);
template <auto find>
constexpr bool is_sound =
    Finding<verdict_of<find>.fault, verdict_of<find>.where.rank, verdict_of<find>.where.at, verdict_of<find>.where.waits_for>::is_sound;

}  // namespace pdp::plan
