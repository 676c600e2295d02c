#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/verify/values.hpp>

namespace pdp::plan {

enum class Fault : std::uint8_t { none, deadlock, order, mismatch, forgotten };

/// What verify() found. A literal, so that it can stand in a static_assert; explain() says it in words.
struct Verdict {
  struct Stuck {
    int rank = -1;
    int at = -1;         // instruction of the rank's list
    int waits_for = -1;  // another rank
  };
  Fault fault = Fault::none;
  const char* reason = "";
  const char* list = "";  // of the plan: setup, step or evaluate; units, where one is not as it can be; or plan, where that is not
  Stuck where{};
  std::array<Stuck, 8> cycle{};  // of a deadlock: each waits for the next, the last one for the first
  int cycle_length = 0;
  int peak_micro_batches = 0;  // the most on any rank whose activations are held at once

  constexpr explicit operator bool() const { return fault == Fault::none; }
};

namespace detail {

/// Runs the lists of all ranks without data. A send is complete when its receive has been posted, never before: what passes here cannot
/// hang for lack of buffers.
class Rehearsal {
 public:
  constexpr Rehearsal(const Outline& model, const std::vector<Plan>& plans, Instructions Plan::*list, bool training)
      : model_{model}, plans_{plans}, list_{list}, training_{training} {
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      Rank& r = ranks_.emplace_back(model, plans[rank].micro_batches);
      const auto boundaries = as_size(model.size() + 1), micro_batches = as_size(plans[rank].micro_batches);
      for (auto* each : {&r.weighed, &r.fresh}) each->assign(as_size(model.size()), 0);
      for (auto* each : {&r.kept, &r.taken}) each->assign(boundaries * micro_batches, 0);
      r.held.assign(micro_batches, 0);
      r.judged.assign(micro_batches, 0);
      for (const Unit& unit : plans[rank].units) r.units.push_back({.present = unit.sharding != Sharding::parameters});
      r.issued.resize(plans[rank].groups.size() + 1);
      r.met.resize(r.issued.size(), 0);
      r.last_message.assign(micro_batches, -1);
      for (const Instruction& i : plans[rank].*list) takes_norm_ = takes_norm_ || i.op == Op::norm_start;
    }
    find_groups();
  }

  constexpr Verdict run() {
    for (int rank = 0; rank < size(); ++rank)
      if (const char* reason = misplaced(rank); reason != nullptr) return finish({Fault::order, reason, "plan", {rank, -1, -1}});
    for (int rank = 0; rank < size(); ++rank)
      for (std::size_t u = 0; u < plan(rank).units.size(); ++u)
        if (const char* reason = malformed(rank, plan(rank).units[u]); reason != nullptr)
          return finish({Fault::order, reason, "units", {rank, as_int(u), -1}});
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < size(); ++rank)
        while (at(rank).next < count(rank)) {
          const Outcome outcome = step(rank, list(rank)[as_size(at(rank).next)]);
          if (outcome.fault != Fault::none) return finish({outcome.fault, outcome.reason, "", {rank, at(rank).next, outcome.waits_for}});
          if (outcome.waits_for >= 0) break;
          ++at(rank).next;
          moved = true;
        }
    }
    for (int rank = 0; rank < size(); ++rank)
      if (at(rank).next < count(rank)) return finish(deadlock(rank));
    for (int rank = 0; rank < size(); ++rank)
      if (const char* reason = left_over(rank); reason != nullptr)
        return finish({Fault::forgotten, reason, "", {rank, count(rank) - 1, -1}});
    return finish({});
  }

 private:
  /// What is wrong with the part of the layers that a rank has, and with those who have the others; null where nothing is.
  [[nodiscard]] constexpr const char* misplaced(int rank) const {
    const Plan& own = plan(rank);
    if (own.tensor.count != model_.parts) return "has the layers in another number of parts than the model is divided in";
    if (own.tensor_group < 0 || own.tensor_group > as_int(own.groups.size())) return "names a group that the plan does not have";
    if (model_.parts == 1) return nullptr;
    const std::span<const int> group = members(rank, own.tensor_group);
    for (std::size_t each = 0; each < group.size(); ++each)
      if (plan(group[each]).tensor != nn::Part{as_int(each), model_.parts} || as_int(group.size()) != model_.parts)
        return "has a tensor-parallel group that does not hold each part of the layers once, in their order";
    for (const int other : group)
      if (plan(other).share != own.share || plan(other).micro_batches != own.micro_batches)
        return "has a tensor-parallel group whose ranks do not take the same rows";
    return nullptr;
  }
  /// Whether the ranks of a unit's group take each share of the data once, so that the sum of their gradients is that of all rows.
  [[nodiscard]] constexpr bool takes_all_shares(int rank, const Unit& unit) const {
    const int shares = plan(rank).share.count;
    if (unit.group < 0) return shares == 1;
    std::vector<int> taken(as_size(shares), 0);
    for (const int other : members(rank, unit.group)) {
      const data::Shard share = plan(other).share;
      if (share.count != shares || share.index < 0 || share.index >= shares || taken[as_size(share.index)]++ > 0) return false;
    }
    return std::find(taken.begin(), taken.end(), 0) == taken.end();
  }
  /// What is wrong with a unit as such; null where nothing is.
  [[nodiscard]] constexpr const char* malformed(int rank, const Unit& unit) const {
    if (unit.first < 0 || unit.first >= unit.last || unit.last > model_.size()) return "holds layers that the model does not have";
    if (unit.group < -1 || unit.group > as_int(plan(rank).groups.size())) return "names a group that the plan does not have";
    for (const Unit& other : plan(rank).units)
      if (&other != &unit && other.first < unit.last && unit.first < other.last) return "shares a layer with another unit of the rank";
    if (!takes_all_shares(rank, unit)) return "is reduced over ranks that do not take each share of the data once";
    if (unit.sharding == Sharding::none)
      return unit.slices != 1 || unit.slice != 0 ? "has slices, though nothing of it is sharded" : nullptr;
    if (unit.group < 0) return "is sharded, but held by this rank alone";
    const std::span<const int> group = members(rank, unit.group);
    if (unit.slices != as_int(group.size())) return "has another number of slices than its group has ranks";
    if (unit.slice < 0 || unit.slice >= unit.slices || group[as_size(unit.slice)] != rank)
      return "has another slice than the rank's own place in its group";
    return nullptr;
  }

  using State = RehearsedValues::State;
  struct UnitState {
    bool present = true;  // all of its parameters, as they are
    bool gathering = false;
    bool reducing = false;  // in flight
    int reductions = 0;     // that are complete
    bool updated = false;
  };
  struct Message {
    Instruction start;
    bool waited = false;
    int before = -1;  // the message of the same micro-batch that was started before it
  };
  /// Where the members of a rank's group are in `grouped_`.
  struct Members {
    std::size_t begin = 0, end = 0;
  };
  struct Rank {
    constexpr Rank(const Outline& model, int micro_batches) : values{model, micro_batches} {}

    RehearsedValues values;
    int next = 0;
    std::vector<int> weighed;  // [layer]: micro-batches whose gradient is computed
    std::vector<int> fresh;    // [layer]: those that its gradient holds, which have not gone to slices yet
    std::vector<char> taken;   // [micro-batch][layer]: whether its gradient of the parameters is computed
    std::vector<char> kept;    // [micro-batch][layer]: whether a forward run that began there waits for its backward
    std::vector<int> held;     // [micro-batch]: how many do
    int holding = 0;           // micro-batches of which any do
    std::vector<char> judged;  // [micro-batch]: whether its loss is taken
    std::vector<UnitState> units;
    std::vector<std::vector<Instruction>> issued;  // [group]: collectives in order
    std::vector<int> met;                          // [group]: how many of them, from the first on, are known to meet on all ranks
    std::vector<Message> messages;
    std::vector<int> last_message;  // [micro-batch]: its last one; -1: none
    std::vector<Members> groups;    // [group - 1]
    int shared = -1;                // the micro-batch whose loss the group has shared last: there is one place for it
    int blocking = -1;              // the broadcast, or the like, that this rank is in
    bool counting = false, counted = false, totalling = false, totalled = false, norming = false, normed = false;
  };
  struct Outcome {
    Fault fault = Fault::none;
    const char* reason = "";
    int waits_for = -1;  // the instruction cannot be complete yet
  };
  static constexpr Outcome wrong(const char* reason, int other = -1) { return {Fault::order, reason, other}; }

  [[nodiscard]] constexpr int size() const { return as_int(plans_.size()); }
  constexpr Rank& at(int rank) { return ranks_[as_size(rank)]; }
  [[nodiscard]] constexpr const Plan& plan(int rank) const { return plans_[as_size(rank)]; }
  [[nodiscard]] constexpr const Instructions& list(int rank) const { return plan(rank).*list_; }
  [[nodiscard]] constexpr int count(int rank) const { return as_int(list(rank).size()); }
  [[nodiscard]] constexpr std::size_t place(int micro_batch, int boundary) const {
    return as_size(micro_batch) * as_size(model_.size() + 1) + as_size(boundary);
  }
  /// As plan::members, found once for all.
  [[nodiscard]] constexpr std::span<const int> members(int rank, int group) const {
    const std::span<const int> all{grouped_};
    if (group == 0) return all.first(plans_.size());
    const Members own = ranks_[as_size(rank)].groups[as_size(group) - 1];
    return all.subspan(own.begin, own.end - own.begin);
  }
  constexpr void find_groups() {
    for (int rank = 0; rank < size(); ++rank) grouped_.push_back(rank);
    std::size_t groups = 0;
    for (const Plan& each : plans_) groups = std::max(groups, each.groups.size());
    for (Rank& rank : ranks_) rank.groups.resize(groups);
    for (std::size_t number = 0; number < groups; ++number) {
      std::vector<std::array<int, 3>> found;  // color, key, rank
      for (int rank = 0; rank < size(); ++rank)
        if (number < plan(rank).groups.size()) found.push_back({plan(rank).groups[number].color, plan(rank).groups[number].key, rank});
      std::sort(found.begin(), found.end());
      for (std::size_t begin = 0, end = 0; begin < found.size(); begin = end) {
        const std::size_t offset = grouped_.size();
        for (; end < found.size() && found[end][0] == found[begin][0]; ++end) grouped_.push_back(found[end][2]);
        for (std::size_t each = begin; each < end; ++each) at(found[each][2]).groups[number] = {offset, grouped_.size()};
      }
    }
  }

  constexpr Outcome step(int rank, const Instruction& i) {
    if (i.group < 0 || i.group > as_int(plan(rank).groups.size())) return wrong("names a group that the plan does not have");
    switch (i.op) {
      case Op::forward:
      case Op::loss:
      case Op::backward_input:
      case Op::backward_weight:
        return compute(rank, i);
      case Op::send_start:
      case Op::receive_start:
      case Op::send_wait:
      case Op::receive_wait:
        return message(rank, i);
      case Op::update:
        return update(rank, i);
      default:
        return collective(rank, i);
    }
  }

  constexpr Outcome compute(int rank, const Instruction& i) {
    Rank& r = at(rank);
    if (!has_micro_batch(rank, i)) return wrong("names a micro-batch that the plan does not have");
    if (i.first < 0 || i.last > model_.size() || (i.op == Op::loss ? i.first != model_.size() : i.first >= i.last))
      return wrong("names layers that the model does not have");
    const int m = i.micro_batch;
    for (std::size_t u = 0; u < r.units.size() && i.op != Op::loss && i.op != Op::backward_weight; ++u) {
      if (!needs(i, plan(rank).units[u])) continue;
      if (!r.units[u].present) return wrong("needs parameters that are not there");
      if (r.units[u].updated) return wrong("needs parameters as they were before their update");
      if (plan(rank).units[u].sharding == Sharding::state && (r.units[u].reducing || r.units[u].reductions > 0))
        return wrong("computes with parameters that other ranks may change, as their gradients have been given away");
    }
    for (int layer = i.first; layer < i.last; ++layer)
      if (model_.layers[as_size(layer)].parameters > 0 && !holds(rank, layer)) return wrong("needs parameters that the rank does not hold");
    if (i.op == Op::forward) {
      if (const char* reason = r.values.missing(Tensor::activation, m, i.first); reason != nullptr) return wrong(reason);
      for (int layer = i.first; layer < i.last; ++layer) {
        const bool is_term = exchange(layer) == nn::Exchange::output;
        if (is_term && layer + 1 < i.last) return wrong("goes on from an activation whose terms have not been added up");
        if (const char* reason = give(rank, Tensor::activation, m, layer + 1, layer, is_term); reason != nullptr) return wrong(reason);
      }
      if (!std::exchange(r.kept[place(m, i.first)], 1) && r.held[as_size(m)]++ == 0) ++r.holding;
      peak_ = std::max(peak_, r.holding);
    } else if (i.op == Op::loss) {
      if (const char* reason = r.values.missing(Tensor::activation, m, i.first); reason != nullptr) return wrong(reason);
      if (model_.output_is_sharded && r.shared != m)
        return wrong("needs what the other ranks know of the loss from their columns of the output");
      if (training_ && !r.counted) return wrong("needs the number of rows of the step, which is not known before count_wait");
      if (r.totalling) return wrong("comes after totals_start, so the totals do not hold it");
      if (std::exchange(r.judged[as_size(m)], 1)) return wrong("is taken twice");
      if (const char* reason = r.values.give(Tensor::gradient, m, i.first, State::whole, false); reason != nullptr) return wrong(reason);
    } else if (i.op == Op::backward_input) {
      if (const char* reason = r.values.missing(Tensor::gradient, m, i.last); reason != nullptr) return wrong(reason);
      for (int layer = i.last - 1; layer >= i.first; --layer) {
        const bool is_term = exchange(layer) == nn::Exchange::gradient_of_input && model_.passes_gradient(layer);
        if (is_term && layer > i.first) return wrong("goes on from a gradient whose terms have not been added up");
        if (const char* reason = give(rank, Tensor::gradient, m, layer, layer, is_term); reason != nullptr) return wrong(reason);
      }
    } else {
      for (int layer = i.last - 1; layer >= i.first; --layer) {
        if (has_parameters(layer)) {
          if (const char* reason = r.values.missing(Tensor::gradient, m, layer + 1); reason != nullptr) return wrong(reason);
          if (const char* reason = r.values.missing(Tensor::activation, m, layer); reason != nullptr) return wrong(reason);
        }
        if (model_.layers[as_size(layer)].saved > 0 && r.values.state(Tensor::gradient, m, layer) == State::none)
          return wrong("comes before backward_input of a layer that finds gradients inside on the way");
        int& fresh = r.fresh[as_size(layer)];
        if (i.accumulate != (fresh > 0))
          return wrong(i.accumulate ? "adds to the gradient of an earlier step: the first micro-batch must not accumulate"
                                    : "overwrites the gradient of an earlier micro-batch: all but the first must accumulate");
        if (changes_reduced(rank, layer)) return wrong("changes a gradient that is being reduced, or still has to be");
        if (std::exchange(r.taken[place(m, layer)], 1)) return wrong("takes the gradient of a micro-batch twice");
        ++fresh;
        ++r.weighed[as_size(layer)];
        if (std::exchange(r.kept[place(m, layer)], 0) && --r.held[as_size(m)] == 0) --r.holding;
      }
    }
    return {};
  }

  [[nodiscard]] constexpr nn::Exchange exchange(int layer) const { return model_.layers[as_size(layer)].exchange; }
  [[nodiscard]] constexpr bool has_parameters(int layer) const { return model_.layers[as_size(layer)].parameters > 0; }
  /// A layer leaves a value at a boundary.
  constexpr const char* give(int rank, Tensor tensor, int m, int boundary, int layer, bool is_term) {
    return at(rank).values.give(tensor, m, boundary, is_term ? State::term : State::whole, model_.layers[as_size(layer)].is_view);
  }
  /// Whether an instruction computes with parameters of a unit.
  [[nodiscard]] constexpr bool needs(const Instruction& i, const Unit& unit) const {
    for (int layer = std::max<int>(i.first, unit.first); layer < std::min<int>(i.last, unit.last); ++layer)
      if (has_parameters(layer)) return true;
    return false;
  }

  [[nodiscard]] constexpr bool has_micro_batch(int rank, const Instruction& i) const {
    return i.micro_batch >= 0 && i.micro_batch < (training_ ? plan(rank).micro_batches : 1);
  }
  [[nodiscard]] constexpr bool holds(int rank, int layer) const {
    for (const Unit& unit : plan(rank).units)
      if (unit.first <= layer && layer < unit.last) return true;
    return false;
  }
  /// Whether the gradient of a layer lies where a reduction is at work, or has been once for all.
  constexpr bool changes_reduced(int rank, int layer) {
    const auto& units = plan(rank).units;
    for (const Unit& own : units) {
      if (layer < own.first || layer >= own.last) continue;
      for (std::size_t u = 0; u < units.size(); ++u) {
        const UnitState& state = at(rank).units[u];
        const bool same = units[u].first == own.first;
        if (own.sharding < Sharding::gradients) {
          if (same && (state.reducing || state.reductions > 0)) return true;
        } else if (units[u].sharding >= Sharding::gradients && units[u].buffer == own.buffer) {
          if (state.reducing || (!same && left_out(rank, units[u]))) return true;
        }
      }
    }
    return false;
  }

  /// Messages of one pair, group, tensor, micro-batch and boundary meet in the order in which they are started.
  constexpr Outcome message(int rank, const Instruction& i) {
    Rank& r = at(rank);
    const std::span<const int> group = members(rank, i.group);
    if (i.peer < 0 || i.peer >= as_int(group.size())) return wrong("names a rank that the group does not have");
    const int peer = group[as_size(i.peer)];
    if (peer == rank) return wrong("is a message of a rank to itself");
    if (!has_micro_batch(rank, i)) return wrong("names a micro-batch that the plan does not have");
    if (i.first < 0 || i.first > model_.size()) return wrong("names a boundary that the model does not have");
    const bool sends = i.op == Op::send_start || i.op == Op::send_wait;
    if (i.op == Op::send_start && !r.values.is_whole(i.tensor, i.micro_batch, i.first)) return wrong("sends what is not there yet");
    if (i.op == Op::receive_start && i.tensor == Tensor::activation && model_.is_input(i.first))
      return wrong("receives what the rank has: the batch");
    if (i.op == Op::send_start || i.op == Op::receive_start) {
      int& last = r.last_message[as_size(i.micro_batch)];
      for (int each = last; each >= 0; each = r.messages[as_size(each)].before)
        if (const Message& earlier = r.messages[as_size(each)]; earlier.start == i && !earlier.waited)
          return wrong("starts a message again before it has been waited for");
      if (i.op == Op::send_start)
        r.values.start_send(i.tensor, i.micro_batch, i.first);
      else if (const char* reason = r.values.start_receive(i.tensor, i.micro_batch, i.first); reason != nullptr)
        return wrong(reason);
      r.messages.push_back({i, false, last});
      last = as_int(r.messages.size()) - 1;
      return {};
    }
    Instruction started = i;
    started.op = sends ? Op::send_start : Op::receive_start;
    const Rank& other = at(peer);
    const auto started_before = [](const Rank& by, const Instruction& start) {
      int found = 0;
      const auto m = as_size(start.micro_batch);
      for (int each = m < by.last_message.size() ? by.last_message[m] : -1; each >= 0; each = by.messages[as_size(each)].before)
        if (by.messages[as_size(each)].start == start) ++found;
      return found;
    };
    Message* own = nullptr;  // the last one: an earlier one has been waited for before it was started
    for (int each = r.last_message[as_size(i.micro_batch)]; each >= 0 && own == nullptr; each = r.messages[as_size(each)].before)
      if (Message& earlier = r.messages[as_size(each)]; earlier.start == started) own = &earlier;
    if (own == nullptr || own->waited) return wrong("waits for a message that nothing has started");
    Instruction theirs = started;
    theirs.op = sends ? Op::receive_start : Op::send_start;
    theirs.peer = as_int(std::find(group.begin(), group.end(), rank) - group.begin());
    if (started_before(other, theirs) < started_before(r, started)) return {Fault::none, "", peer};
    own->waited = true;
    if (sends)
      r.values.end_send(i.tensor, i.micro_batch, i.first);
    else
      r.values.end_receive(i.tensor, i.micro_batch, i.first);
    return {};
  }

  constexpr Outcome update(int rank, const Instruction& i) {
    if (i.unit < 0 || i.unit >= as_int(at(rank).units.size())) return wrong("names a unit that the plan does not have");
    UnitState& unit = at(rank).units[as_size(i.unit)];
    const Unit& spec = plan(rank).units[as_size(i.unit)];
    if (const char* reason = missing_gradients(rank, i.unit); reason != nullptr) return wrong(reason);
    if (takes_norm_ && !at(rank).normed) return wrong("comes before the norm of the whole gradient is known");
    if (unit.gathering) return wrong("changes parameters that are being gathered");
    if (unit.updated) return wrong("applies the same gradient twice");
    unit.updated = true;
    if (spec.sharding != Sharding::none) unit.present = false;
    return {};
  }
  /// Why a unit's gradients are not those of the whole batch yet; null where they are.
  [[nodiscard]] constexpr const char* missing_gradients(int rank, int unit) {
    const Unit& spec = plan(rank).units[as_size(unit)];
    const UnitState& state = at(rank).units[as_size(unit)];
    if (!complete(rank, spec)) return "comes before the gradients of all micro-batches are in";
    if (spec.group >= 0 && members(rank, spec.group).size() > 1 && (state.reductions == 0 || state.reducing || left_out(rank, spec)))
      return "comes before the gradients of the other ranks are in";
    return nullptr;
  }
  [[nodiscard]] constexpr bool complete(int rank, const Unit& unit) {
    for (int layer = unit.first; layer < unit.last; ++layer)
      if (model_.layers[as_size(layer)].parameters > 0 && at(rank).weighed[as_size(layer)] != plan(rank).micro_batches) return false;
    return true;
  }

  /// Whether slices lack what a rank has computed of a unit's gradients.
  [[nodiscard]] constexpr bool left_out(int rank, const Unit& unit) {
    if (unit.sharding < Sharding::gradients) return false;
    for (int layer = unit.first; layer < unit.last; ++layer)
      if (at(rank).fresh[as_size(layer)] > 0) return true;
    return false;
  }

  constexpr Outcome start_reduction(int rank, const Instruction& i) {
    const Unit& spec = plan(rank).units[as_size(i.unit)];
    UnitState& unit = at(rank).units[as_size(i.unit)];
    if (spec.group != i.group) return wrong("reduces a unit over another group than the one that holds it");
    if (unit.reducing) return wrong("reduces a unit that is being reduced already");
    if (spec.sharding < Sharding::gradients) {
      if (unit.reductions > 0) return wrong("reduces a unit twice");
      if (!complete(rank, spec)) return wrong("comes before the gradients of all micro-batches are in");
      if (i.accumulate) return wrong("adds to the gradient of an earlier step: the first reduction must not accumulate");
    } else {
      int least = -1;
      for (int layer = spec.first; layer < spec.last; ++layer) {
        int& fresh = at(rank).fresh[as_size(layer)];
        if (model_.layers[as_size(layer)].parameters > 0) {
          if (fresh == 0 || (least >= 0 && fresh != least)) return wrong("comes before the gradients of all its layers are in");
          least = fresh;
        }
        fresh = 0;
      }
      if (i.accumulate != (unit.reductions > 0))
        return wrong(i.accumulate ? "adds to the gradient of an earlier step: the first reduction must not accumulate"
                                  : "overwrites the gradient of an earlier micro-batch: all reductions but the first must accumulate");
    }
    unit.reducing = true;
    return {};
  }
  constexpr Outcome start_gather(int rank, const Instruction& i) {
    const auto& units = plan(rank).units;
    const Unit& spec = units[as_size(i.unit)];
    if (spec.sharding == Sharding::none) return wrong("gathers a unit of which every rank holds the whole");
    if (spec.group != i.group) return wrong("gathers a unit over another group than the one that holds it");
    for (std::size_t u = 0; u < units.size() && spec.sharding == Sharding::parameters; ++u) {
      if (units[u].sharding != Sharding::parameters || units[u].buffer != spec.buffer) continue;
      if (at(rank).units[u].gathering) return wrong("gathers to where another unit is being gathered");
      at(rank).units[u].present = false;
    }
    at(rank).units[as_size(i.unit)].gathering = true;
    return {};
  }

  /// What a sum, or the sharing of a loss, needs to begin.
  constexpr Outcome start_exchange(int rank, const Instruction& i) {
    Rank& r = at(rank);
    if (!has_micro_batch(rank, i)) return wrong("names a micro-batch that the plan does not have");
    if (i.first < 0 || i.first > model_.size()) return wrong("names a boundary that the model does not have");
    if (model_.parts == 1 || i.group != plan(rank).tensor_group)
      return wrong("goes over a group that is not the one over which the layers are divided");
    const char* reason = i.op == Op::share_loss ? r.values.missing(Tensor::activation, i.micro_batch, i.first)
                                                : r.values.start_sum(i.tensor, i.micro_batch, i.first);
    return reason == nullptr ? Outcome{} : wrong(reason);
  }

  constexpr Outcome collective(int rank, const Instruction& i) {
    Rank& r = at(rank);
    const bool of_unit =
        i.op == Op::reduce_start || i.op == Op::reduce_wait || i.op == Op::broadcast || i.op == Op::gather_start || i.op == Op::gather_wait;
    if (of_unit && (i.unit < 0 || i.unit >= as_int(r.units.size()))) return wrong("names a unit that the plan does not have");
    auto& issued = r.issued[as_size(i.group)];
    const auto issue = [&] { issued.push_back(i); };
    switch (i.op) {
      case Op::count_start:
        if (std::exchange(r.counting, true)) return wrong("counts the rows twice");
        return issue(), Outcome{};
      case Op::totals_start:
        if (std::exchange(r.totalling, true)) return wrong("takes the totals twice");
        return issue(), Outcome{};
      case Op::norm_start:
        if (i.group != 0) return wrong("takes the norm over a group that is not the world");
        for (std::size_t u = 0; u < r.units.size(); ++u)
          if (const char* reason = missing_gradients(rank, as_int(u)); reason != nullptr) return wrong(reason);
        if (std::exchange(r.norming, true)) return wrong("takes the norm twice");
        return issue(), Outcome{};
      case Op::reduce_start:
      case Op::gather_start: {
        const Outcome outcome = i.op == Op::reduce_start ? start_reduction(rank, i) : start_gather(rank, i);
        if (outcome.fault == Fault::none) issue();
        return outcome;
      }
      case Op::broadcast:
        if (plan(rank).units[as_size(i.unit)].sharding == Sharding::parameters)
          return wrong("broadcasts a unit of which no rank holds the whole");
        if (std::exchange(r.blocking, r.next) != r.next) issue();
        break;
      case Op::share_loss: {
        if (std::exchange(r.blocking, r.next) == r.next) break;
        const Outcome outcome = start_exchange(rank, i);
        if (outcome.fault != Fault::none) return outcome;
        issue();
        break;
      }
      case Op::sum_start: {
        const Outcome outcome = start_exchange(rank, i);
        if (outcome.fault == Fault::none) issue();
        return outcome;
      }
      default:
        break;
    }
    Op start = i.op;
    if (i.op == Op::count_wait) start = Op::count_start;
    if (i.op == Op::totals_wait) start = Op::totals_start;
    if (i.op == Op::norm_wait) start = Op::norm_start;
    if (i.op == Op::reduce_wait) start = Op::reduce_start;
    if (i.op == Op::gather_wait) start = Op::gather_start;
    if (i.op == Op::sum_wait) start = Op::sum_start;
    int number = as_int(issued.size()) - 1;
    const auto is_start = [&](const Instruction& each) { return each.op == start && each.unit == i.unit && same_boundary(each, i); };
    while (number >= 0 && !is_start(issued[as_size(number)])) --number;
    if (number < 0) return wrong("waits for what nothing has started");
    int& met = r.met[as_size(i.group)];
    for (const int other : members(rank, i.group)) {
      for (int call = met; call <= number; ++call) {  // calls of a group run in order: all before this one must have met as well
        const auto& theirs = at(other).issued[as_size(i.group)];
        if (call >= as_int(theirs.size())) return {Fault::none, "", other};
        const Instruction &a = issued[as_size(call)], &b = theirs[as_size(call)];
        if (a.op != b.op || a.peer != b.peer || !same_boundary(a, b) || !same_unit(rank, a, other, b))
          return {Fault::mismatch, "meets another collective on another rank of its group", other};
      }
    }
    met = std::max(met, number + 1);
    if (i.op == Op::count_wait) r.counted = true;
    if (i.op == Op::totals_wait) r.totalled = true;
    if (i.op == Op::norm_wait) r.normed = true;
    if (i.op == Op::share_loss) r.shared = i.micro_batch;
    if (i.op == Op::sum_wait) r.values.end_sum(i.tensor, i.micro_batch, i.first);
    if (i.op == Op::reduce_wait) {
      UnitState& unit = r.units[as_size(i.unit)];
      if (i.accumulate != (unit.reductions > 0)) return wrong("does not end the reduction as it was started");
      unit.reducing = false;
      ++unit.reductions;
    }
    if (i.op == Op::gather_wait) {
      r.units[as_size(i.unit)].gathering = false;
      r.units[as_size(i.unit)].present = true;
    }
    return {};
  }
  static constexpr bool same_boundary(const Instruction& a, const Instruction& b) {
    return a.tensor == b.tensor && a.micro_batch == b.micro_batch && a.first == b.first;
  }
  [[nodiscard]] constexpr bool same_unit(int rank, const Instruction& a, int other, const Instruction& b) const {
    if (a.unit < 0 || b.unit < 0) return a.unit == b.unit;
    const Unit &mine = plan(rank).units[as_size(a.unit)], &theirs = plan(other).units[as_size(b.unit)];
    return plan(rank).tensor == plan(other).tensor && mine.first == theirs.first && mine.last == theirs.last &&
           mine.sharding == theirs.sharding && mine.slices == theirs.slices;
  }

  constexpr const char* left_over(int rank) {
    for (const Message& each : at(rank).messages)
      if (!each.waited) return "leaves a message that is never waited for";
    for (const UnitState& unit : at(rank).units)
      if (unit.gathering) return "leaves parameters that are gathered and never waited for";
    if (at(rank).values.has_terms()) return "leaves terms that are never added up, or a sum that is never waited for";
    if (!training_) return nullptr;
    for (std::size_t u = 0; u < at(rank).units.size(); ++u) {
      const Unit& spec = plan(rank).units[u];
      const UnitState& unit = at(rank).units[u];
      if (!complete(rank, spec)) return "leaves layers whose gradients are never computed";
      if (unit.reducing) return "leaves a reduction that is never waited for";
      if (!unit.updated) return "leaves a unit that is never updated";
      if (!unit.present && spec.sharding < Sharding::parameters) return "leaves parameters that are never gathered after their update";
    }
    if (at(rank).counting != at(rank).counted || at(rank).totalling != at(rank).totalled || at(rank).norming != at(rank).normed)
      return "leaves a count, a norm or totals that are never waited for";
    return nullptr;
  }

  /// Follows who waits for whom until a rank comes up again.
  constexpr Verdict deadlock(int rank) {
    const int other = step(rank, list(rank)[as_size(at(rank).next)]).waits_for;
    Verdict verdict{Fault::deadlock, "waits for ever", "", {rank, at(rank).next, other}};
    std::vector<int> seen;
    while (std::find(seen.begin(), seen.end(), rank) == seen.end()) {
      seen.push_back(rank);
      if (at(rank).next == count(rank)) break;  // waits for a rank that has ended
      rank = step(rank, list(rank)[as_size(at(rank).next)]).waits_for;
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
    verdict.peak_micro_batches = peak_;
    return verdict;
  }

  const Outline& model_;
  const std::vector<Plan>& plans_;
  Instructions Plan::*list_;
  bool training_;
  bool takes_norm_ = false;  // whether any rank does
  std::vector<Rank> ranks_;
  std::vector<int> grouped_;  // ranks: all of them, then those of each group in the group's order
  int peak_ = 0;
};

}  // namespace detail

}  // namespace pdp::plan
