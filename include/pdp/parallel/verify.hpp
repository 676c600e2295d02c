#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pdp/parallel/rehearsal.hpp>

namespace pdp::parallel {

/// Checks the plans of all ranks together, before anything runs: every message has its receive, nobody waits in a circle, collectives of a
/// group come in one order, nothing is used before it is there, and no gradient is forgotten, taken twice, or changed while it travels.
constexpr Verdict verify(const Outline& model, const std::vector<Plan>& plans) {
  const auto run = [&](Instructions Plan::*list, const char* name, bool training) {
    Verdict verdict = detail::Rehearsal{model, plans, list, training}.run();
    if (verdict.list != std::string_view{"units"} && verdict.list != std::string_view{"plan"}) verdict.list = name;
    return verdict;
  };
  if (const Verdict verdict = run(&Plan::setup, "setup", false); !verdict) return verdict;
  if (const Verdict verdict = run(&Plan::evaluate, "evaluate", false); !verdict) return verdict;
  return run(&Plan::step, "step", true);
}

/// What is wrong, in words: "rank 1, step instruction 7 (send_wait ...) ...".
inline std::string explain(const Verdict& verdict, const std::vector<Plan>& plans) {
  if (verdict) return "the plan is sound";
  const auto where = [&](const Verdict::Stuck& stuck) {
    const Plan& plan = plans[static_cast<std::size_t>(stuck.rank)];
    const std::string_view name = verdict.list;
    if (name == "plan") return text("rank ", stuck.rank);
    if (name == "units") return text("rank ", stuck.rank, ", unit ", stuck.at, " of its plan,");
    const Instructions& list = name == "setup" ? plan.setup : name == "step" ? plan.step : plan.evaluate;
    if (stuck.at < 0 || stuck.at >= static_cast<int>(list.size())) return text("rank ", stuck.rank, " at the end of its ", name);
    return text("rank ", stuck.rank, ", ", name, " instruction ", stuck.at, " (", describe(list[static_cast<std::size_t>(stuck.at)]), ")");
  };
  std::string words = text("the plan cannot run: ", where(verdict.where), " ", verdict.reason);
  for (int each = 0; each < verdict.cycle_length; ++each) {
    const Verdict::Stuck& stuck = verdict.cycle[static_cast<std::size_t>(each)];
    words += text(each == 0 ? ": " : "; ", where(stuck), " waits for rank ", stuck.waits_for);
  }
  return words;
}

template <Strategy S>
constexpr Verdict verify(const S& strategy, const Outline& model, int ranks) {
  return verify(model, plans(strategy, model, ranks));
}

/// What is wrong with a plan, in a type, so that a compiler's message shows it: the kind of fault, the rank, the number of the instruction
/// in its list, and the rank that it waits for.
template <Fault fault, int rank, int instruction, int waits_for>
struct Finding {
  static constexpr bool is_sound = fault == Fault::none;
  static_assert(is_sound,
                "pdp: a plan cannot run; Finding<fault, rank, instruction, waited for> says where, and explain() says it in words");
};

/// For a static_assert where the sizes are constants.
///
///   static_assert(parallel::is_sound<[] { return verify(Pipeline<Mine>{.micro_batches = 8}, nn::outline(model, Shape{784}), 4); }>);
template <auto find>
constexpr bool is_sound = [] {
  constexpr Verdict verdict = find();
  return Finding<verdict.fault, verdict.where.rank, verdict.where.at, verdict.where.waits_for>::is_sound;
}();

}  // namespace pdp::parallel
