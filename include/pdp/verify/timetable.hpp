#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/cuts.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// When each rank has done what, if messages take no time. The plans must be sound.
class Timetable {
 public:
  Timetable(const Outline& model, const std::vector<Plan>& plans) : model_{model}, plans_{plans}, ranks_(plans.size()) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        for (auto& r = ranks_[rank]; r.next < plans_[rank].step.size() && advance(as_int(rank), plans_[rank].step[r.next]); ++r.next)
          moved = true;
    }
    for (const Rank& rank : ranks_) end_ = std::max(end_, rank.clock);
  }
  /// What part of the step's time a rank does not compute.
  [[nodiscard]] double idle(int rank) const { return end_ > 0 ? 1 - ranks_[as_size(rank)].busy / end_ : 0; }

 private:
  struct Started {
    Instruction what;
    double at;
  };
  struct Rank {
    std::size_t next = 0;
    std::size_t sharing = as_size(-1);  // the share_loss that this rank is in
    double clock = 0, busy = 0;
    std::vector<Started> sends, collectives;
  };

  /// False where the rank has to wait for one that is not there yet.
  bool advance(int rank, const Instruction& i) {
    Rank& r = ranks_[as_size(rank)];
    switch (i.op) {
      case Op::forward:
      case Op::backward_input:
      case Op::backward_weight:
        for (int layer = i.first; layer < i.last; ++layer) {
          if (i.op == Op::backward_input && !model_.passes_gradient(layer)) continue;
          const auto time = static_cast<double>(cost(model_.layers[as_size(layer)]));
          r.busy += time;
          r.clock += time;
        }
        return true;
      case Op::send_start:
        r.sends.push_back({i, r.clock});
        return true;
      case Op::receive_wait:
        return meet(rank, i);
      case Op::count_start:
      case Op::reduce_start:
      case Op::gather_start:
      case Op::norm_start:
      case Op::totals_start:
      case Op::sum_start:
        r.collectives.push_back({i, r.clock});
        return true;
      case Op::count_wait:
        return gather(rank, i, Op::count_start);
      case Op::reduce_wait:
        return gather(rank, i, Op::reduce_start);
      case Op::gather_wait:
        return gather(rank, i, Op::gather_start);
      case Op::norm_wait:
        return gather(rank, i, Op::norm_start);
      case Op::totals_wait:
        return gather(rank, i, Op::totals_start);
      case Op::sum_wait:
        return gather(rank, i, Op::sum_start);
      case Op::share_loss:
        if (std::exchange(r.sharing, r.next) != r.next) r.collectives.push_back({i, r.clock});
        return gather(rank, i, Op::share_loss);
      default:
        return true;
    }
  }
  bool meet(int rank, const Instruction& i) {
    const std::vector<int> group = members(plans_, rank, i.group);
    Instruction theirs = i;
    theirs.op = Op::send_start;
    theirs.peer = as_int(std::ranges::find(group, rank) - group.begin());
    const auto& sends = ranks_[as_size(group[as_size(i.peer)])].sends;
    const auto sent = std::ranges::find(sends, theirs, &Started::what);
    if (sent == sends.end()) return false;
    auto& clock = ranks_[as_size(rank)].clock;
    clock = std::max(clock, sent->at);
    return true;
  }
  /// Units have other numbers on other ranks, so collectives are found by their place among those of the group.
  bool gather(int rank, const Instruction& i, Op start) {
    const auto own = starts(rank, i.group);
    std::size_t number = own.size();
    const auto is_start = [&](const Instruction& each) {
      return each.op == start && each.unit == i.unit && each.tensor == i.tensor && each.micro_batch == i.micro_batch &&
             each.first == i.first;
    };
    while (number > 0 && !is_start(own[number - 1].what)) --number;
    auto& clock = ranks_[as_size(rank)].clock;
    double latest = clock;
    for (const int other : members(plans_, rank, i.group)) {
      const auto theirs = starts(other, i.group);
      if (theirs.size() < number || number == 0) return false;
      latest = std::max(latest, theirs[number - 1].at);
    }
    clock = latest;
    return true;
  }
  [[nodiscard]] std::vector<Started> starts(int rank, int group) const {
    std::vector<Started> found;
    for (const Started& each : ranks_[as_size(rank)].collectives)
      if (each.what.group == group) found.push_back(each);
    return found;
  }

  const Outline& model_;
  const std::vector<Plan>& plans_;
  std::vector<Rank> ranks_;
  double end_ = 0;
};

}  // namespace pdp::plan
