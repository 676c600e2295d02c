#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/verify/group_table.hpp>
#include <pdp/verify/rank.hpp>
#include <pdp/verify/structure.hpp>
#include <pdp/verify/verdict.hpp>

namespace pdp::plan::detail {

/// Runs the instruction lists of all ranks without data. A send is complete only when its receive has been posted, so a plan that passes
/// cannot hang for lack of buffers.
class Rehearsal {
 public:
  constexpr Rehearsal(const Outline& model, const std::vector<Plan>& plans, Instructions Plan::*list, bool training)
      : model_{model}, plans_{plans}, list_{list}, training_{training}, groups_{plans} {
    for (const Plan& plan : plans)
      for (const Instruction& i : plan.*list) takes_norm_ = takes_norm_ || i.op == Op::norm_start;
  }

  constexpr Verdict run() {
    if (const Verdict verdict = StructureCheck{model_, plans_, groups_}.run(); !verdict) return verdict;
    for (int rank = 0; rank < size(); ++rank) ranks_.emplace_back(model_, plans_[as_size(rank)], groups_, rank, training_);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < size(); ++rank) {
        for (; !is_through(rank); ++at(rank).next, moved = true) {
          const Outcome outcome = step(rank);
          if (outcome.fault != Fault::none) return finish({outcome.fault, outcome.reason, "", {rank, at(rank).next, outcome.waits_for}});
          if (outcome.waits_for >= 0) break;
        }
      }
    }
    for (int rank = 0; rank < size(); ++rank)
      if (!is_through(rank)) return finish(deadlock(rank));
    for (int rank = 0; rank < size(); ++rank)
      if (const char* reason = at(rank).left_over(); reason != nullptr)
        return finish({Fault::forgotten, reason, "", {rank, at(rank).next - 1, -1}});
    return finish({});
  }

  /// Returns for each rank the fraction of the time in which it does not compute. Requires that run() found no fault.
  [[nodiscard]] constexpr std::vector<double> idle() const {
    double end = 0;
    for (const RehearsedRank& rank : ranks_) end = std::max(end, rank.clock.now());
    std::vector<double> parts;
    for (const RehearsedRank& rank : ranks_) parts.push_back(end > 0 ? 1 - rank.clock.busy() / end : 0);
    return parts;
  }

 private:
  /// The outcome of an instruction. Default: it is complete.
  struct Outcome {
    Fault fault = Fault::none;
    const char* reason = "";
    int waits_for = -1;  // the rank that it needs to complete; -1: none
  };
  /// `reason`: null if nothing is wrong.
  static constexpr Outcome wrong(const char* reason) { return reason == nullptr ? Outcome{} : Outcome{Fault::order, reason, -1}; }

  [[nodiscard]] constexpr int size() const { return as_int(plans_.size()); }
  constexpr RehearsedRank& at(int rank) { return ranks_[as_size(rank)]; }
  [[nodiscard]] constexpr const Instructions& list(int rank) const { return plans_[as_size(rank)].*list_; }
  constexpr bool is_through(int rank) { return at(rank).next == as_int(list(rank).size()); }

  constexpr Outcome step(int rank) {
    const Instruction& i = list(rank)[as_size(at(rank).next)];
    if (const char* reason = at(rank).misnamed(i); reason != nullptr) return wrong(reason);
    if (i.op == Op::update) return wrong(at(rank).update(i, takes_norm_));
    if (i.op == Op::add_tied) return wrong(at(rank).units.add_tied(i));
    if (!is_call(i.op)) return wrong(at(rank).compute(i));
    return is_message(i.op) ? message(rank, i) : collective(rank, i);
  }

  constexpr Outcome message(int rank, const Instruction& i) {
    RehearsedRank& r = at(rank);
    const std::span<const int> group = groups_.members(rank, i.group);
    if (i.peer < 0 || i.peer >= as_int(group.size())) return wrong("names a rank that the group does not have");
    const int peer = group[as_size(i.peer)];
    if (peer == rank) return wrong("is a message of a rank to itself");
    if (const char* reason = r.misnamed_boundary(i); reason != nullptr) return wrong(reason);
    if (is_start(i.op)) return wrong(r.start_message(i));
    const Instruction started = start_of(i);
    RehearsedMessage* const own = r.messages.last(started);  // earlier ones with the same start have been waited for
    if (own == nullptr || own->waited) return wrong("waits for a message that nothing has started");
    Instruction wanted = started;
    wanted.op = started.op == Op::send_start ? Op::receive_start : Op::send_start;
    wanted.peer = as_int(std::find(group.begin(), group.end(), rank) - group.begin());
    const RehearsedMessage* const theirs = at(peer).messages.numbered(wanted, own->number);
    if (theirs == nullptr) return {Fault::none, "", peer};
    own->waited = true;
    r.end_message(i, *theirs);
    return {};
  }

  /// Matches collectives by their position in the group's order of calls, since unit numbers differ between ranks.
  constexpr Outcome collective(int rank, const Instruction& i) {
    RehearsedRank& r = at(rank);
    auto& calls = r.calls[as_size(i.group)];
    if (!is_wait(i.op) && r.blocking != r.next) {
      if (const char* reason = r.start_call(i); reason != nullptr) return wrong(reason);
      calls.push_back({i, r.clock.now()});
      if (is_start(i.op)) return {};
      r.blocking = r.next;
    }
    int number = as_int(calls.size()) - 1;
    const Op start = start_of(i.op);
    const auto is_its_start = [&](const Instruction& each) { return each.op == start && each.unit == i.unit && same_boundary(each, i); };
    while (number >= 0 && !is_its_start(calls[as_size(number)].start)) --number;
    if (number < 0) return wrong("waits for a call that was never started");
    int& met = r.met[as_size(i.group)];
    double latest = 0;
    for (const int other : groups_.members(rank, i.group)) {
      const auto& theirs = at(other).calls[as_size(i.group)];
      for (int call = met; call <= number; ++call) {  // calls of a group run in order: all earlier ones must match as well
        if (call >= as_int(theirs.size())) return {Fault::none, "", other};
        if (!is_same(rank, calls[as_size(call)].start, other, theirs[as_size(call)].start))
          return {Fault::mismatch, "differs from the collective of another rank of its group", other};
      }
      latest = std::max(latest, theirs[as_size(number)].at);
    }
    met = std::max(met, number + 1);
    r.clock.wait_until(latest);
    return wrong(r.end_call(i));
  }
  static constexpr bool same_boundary(const Instruction& a, const Instruction& b) {
    return a.tensor == b.tensor && a.micro_batch == b.micro_batch && a.first == b.first && a.pause == b.pause;
  }
  /// Returns whether two ranks make the same collective.
  [[nodiscard]] constexpr bool is_same(int rank, const Instruction& a, int other, const Instruction& b) const {
    if (a.op != b.op || a.peer != b.peer || !same_boundary(a, b)) return false;
    if (a.unit < 0 || b.unit < 0) return a.unit == b.unit;
    const Plan &mine = plans_[as_size(rank)], &theirs = plans_[as_size(other)];
    const Unit &unit = mine.units[as_size(a.unit)], &their_unit = theirs.units[as_size(b.unit)];
    if (a.op == Op::sum_tied) {  // of two ranks, each has another one of the two layers
      return mine.share == theirs.share && mine.tensor == theirs.tensor && unit.sharding == their_unit.sharding &&
             unit.slices == their_unit.slices && unit.slice == their_unit.slice &&
             (rank == other || (unit.first == 0) != (their_unit.first == 0));
    }
    return mine.tensor == theirs.tensor && unit.first == their_unit.first && unit.last == their_unit.last &&
           unit.sharding == their_unit.sharding && unit.slices == their_unit.slices;
  }

  /// Follows the ranks that wait for each other until one appears again. Returns the deadlock with its cycle.
  constexpr Verdict deadlock(int rank) {
    Verdict verdict{Fault::deadlock, "waits for ever", "", {rank, at(rank).next, step(rank).waits_for}};
    std::vector<int> seen;
    while (std::find(seen.begin(), seen.end(), rank) == seen.end()) {
      seen.push_back(rank);
      if (is_through(rank)) break;  // the previous rank waits for one that has ended
      rank = step(rank).waits_for;
      if (rank < 0) break;
    }
    for (auto each = std::find(seen.begin(), seen.end(), rank); each != seen.end() && verdict.cycle_length < as_int(verdict.cycle.size());
         ++each) {
      const auto after = each + 1 == seen.end() ? rank : *(each + 1);
      verdict.cycle[as_size(verdict.cycle_length++)] = {*each, at(*each).next, after};
    }
    return verdict;
  }

  constexpr Verdict finish(Verdict verdict) const {
    for (const RehearsedRank& rank : ranks_) verdict.peak_micro_batches = std::max(verdict.peak_micro_batches, rank.peak());
    return verdict;
  }

  const Outline& model_;
  const std::vector<Plan>& plans_;
  Instructions Plan::*list_;
  bool training_;
  bool takes_norm_ = false;  // whether any rank takes the norm
  GroupTable groups_;
  std::vector<RehearsedRank> ranks_;
};

}  // namespace pdp::plan::detail
