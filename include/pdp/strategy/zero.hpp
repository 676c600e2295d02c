#pragma once

#include <array>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/strategy/strategy_ref.hpp>

namespace pdp::strategy {

namespace detail {

/// Writes the instruction lists of one rank of Zero. All ranks have the same lists.
///
/// Neighbouring units use different buffers. While one unit is in use, the next one is gathered, and the gradients of the previous one are
/// reduced.
class ZeroWriter {
 public:
  constexpr ZeroWriter(const Outline& model, RankInWorld at, Sharding sharding, int accumulate, Index unit_elements)
      : model_{model}, sharding_{sharding} {
    plan_.share = {at.rank, at.size};
    plan_.micro_batches = accumulate;
    plan_.units = units_by_size(model, 0, model.size(), unit_elements, world);
    for (int u = 0; u < units(); ++u) {
      Unit& unit = plan_.units[as_size(u)];
      unit.sharding = sharding;
      unit.slices = at.size;
      unit.slice = at.rank;
      unit.buffer = u % buffers;
    }
  }

  [[nodiscard]] constexpr Plan write() {
    // Each slice of sharded parameters is on one rank only, so there is nothing to make equal.
    for (int u = 0; u < units() && !gathers(); ++u) plan_.setup.push_back(on_unit(Op::broadcast, u, world, 0));
    write_step();
    list_ = &plan_.evaluate;
    gathered_ = {none, none};
    forward(0, -1);
    put(compute(Op::loss, 0, layers(), layers()));
    return std::move(plan_);
  }

 private:
  static constexpr int world = 0, buffers = 2, none = -1;

  [[nodiscard]] constexpr int units() const { return as_int(plan_.units.size()); }
  [[nodiscard]] constexpr const Unit& unit(int number) const { return plan_.units[as_size(number)]; }
  [[nodiscard]] constexpr int layers() const { return plan_.units.front().last; }
  /// gathers(): parameters are gathered before they are needed. reduces_each(): gradients are reduced after each micro-batch.
  [[nodiscard]] constexpr bool gathers() const { return sharding_ == Sharding::parameters; }
  [[nodiscard]] constexpr bool reduces_each() const { return sharding_ >= Sharding::gradients; }
  [[nodiscard]] constexpr bool trains(int number) const { return !is_frozen(model_, unit(number)); }
  /// Returns whether backward reads parameters of a unit, or computes their gradients.
  [[nodiscard]] constexpr bool is_needed_in_backward(int number) const {
    return trains(number) || model_.passes_gradient(unit(number).last - 1);
  }
  constexpr void put(const Instruction& instruction) { list_->push_back(instruction); }

  constexpr void write_step() {
    list_ = &plan_.step;
    put(collective(Op::count_start));
    for (int m = 0; m < plan_.micro_batches; ++m) {
      const bool last = m == plan_.micro_batches - 1;
      forward(m, is_needed_in_backward(0) ? 0 : none);
      if (m == 0) put(collective(Op::count_wait));
      put(compute(Op::loss, m, layers(), layers()));
      if (last) put(collective(Op::totals_start));
      for (int u = 0; u < units(); ++u) {
        if (is_needed_in_backward(u)) need(u, u + 1 < units() && is_needed_in_backward(u + 1) ? u + 1 : none);
        if (reduces_each()) end_reduction(u % buffers);
        append_backward(plan_.step, m, unit(u).first, unit(u).last, m > 0 && !(reduces_each() && trains(u)));
        if (!trains(u)) continue;
        if (reduces_each())
          reduce(u, m > 0, last);
        else if (last)
          put(on_unit(Op::reduce_start, u, world));
      }
    }
    if (reduces_each()) {
      for (int u = 1; u <= buffers; ++u) end_reduction((last_reduced_ + u) % buffers);  // in the order in which they were started
    } else {
      for (int u = 0; u < units(); ++u) {
        if (!trains(u)) continue;
        put(on_unit(Op::reduce_wait, u, world));
        update(u);
      }
    }
    for (int u = 0; u < units() && !gathers(); ++u)
      if (trains(u)) put(on_unit(Op::gather_wait, u, world));
    put(collective(Op::totals_wait));
  }

  /// Writes the forward pass of all units. `after`: the unit that is needed after the pass, and that is prefetched during it; none: no
  /// prefetch.
  constexpr void forward(int m, int after) {
    for (int u = units() - 1; u >= 0; --u) {
      need(u, u > 0 ? u - 1 : after);
      put(compute(Op::forward, m, unit(u).first, unit(u).last));
    }
  }

  /// Makes the parameters of a unit available, and starts to gather those of the next one.
  constexpr void need(int u, int next) {
    if (!gathers()) return;
    ask(u);
    if (next != none) ask(next);
    if (std::exchange(on_their_way_[as_size(u % buffers)], none) == u) put(on_unit(Op::gather_wait, u, world));
  }
  constexpr void ask(int u) {
    const auto buffer = as_size(u % buffers);
    if (gathered_[buffer] == u) return;
    gathered_[buffer] = on_their_way_[buffer] = u;
    put(on_unit(Op::gather_start, u, world));
  }

  constexpr void reduce(int u, bool accumulate, bool last) {
    Reduction& reduction = reductions_[as_size(u % buffers)];
    reduction = {u, accumulate, last};
    last_reduced_ = u;
    put(on_unit(Op::reduce_start, u, world, -1, accumulate));
  }
  /// Waits for the reduction that uses a buffer. The last reduction of a unit is followed by its update.
  constexpr void end_reduction(int buffer) {
    const Reduction reduction = std::exchange(reductions_[as_size(buffer)], {});
    if (reduction.unit == none) return;
    put(on_unit(Op::reduce_wait, reduction.unit, world, -1, reduction.accumulate));
    if (reduction.last) update(reduction.unit);
  }
  constexpr void update(int u) {
    put(on_unit(Op::update, u));
    if (!gathers()) put(on_unit(Op::gather_start, u, world));
  }

  struct Reduction {
    int unit = none;
    bool accumulate = false, last = false;
  };

  const Outline& model_;
  Sharding sharding_;
  Plan plan_;
  Instructions* list_ = nullptr;
  std::array<int, buffers> gathered_{none, none}, on_their_way_{none, none};  // [buffer]: unit
  std::array<Reduction, buffers> reductions_{};
  int last_reduced_ = 0;  // unit
};

}  // namespace detail

/// Data parallelism without redundant copies: each rank keeps one slice of the optimizer state (stage 1), also of the gradients (stage 2),
/// also of the parameters (stage 3). In stage 3, parameters are gathered unit by unit when they are needed. Rajbhandari et al., "ZeRO:
/// memory optimizations toward training trillion parameter models", SC 2020.
struct Zero {
  int stage = 1;
  int accumulate = 1;              // micro-batches in a rank's share of a step
  Index unit_elements = 8 * 1024;  // minimum parameters of a unit, which is reduced and gathered as a whole

  [[nodiscard]] constexpr Plan plan(const Outline& model, RankInWorld at) const {
    if (stage < 1 || stage > 3) throw ConfigError{text("stage = ", stage, " was given; ZeRO has the stages 1, 2 and 3")};
    check_accumulate(accumulate);
    check_layers(model);
    return detail::ZeroWriter{model, at, static_cast<Sharding>(stage), accumulate, unit_elements}.write();
  }
};

static_assert(Strategy<Zero>);

#ifdef PDP_SEPARATE_CORE
extern template Plan detail::plan_of<Zero>(const void*, const Outline&, RankInWorld);
#endif

}  // namespace pdp::strategy
