#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/engine/call_memory.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/parameter_memory.hpp>
#include <pdp/plan/layout.hpp>

namespace pdp::engine {

/// Whether the type of a communicator permits that its ranks see each other's memory. `Reduced`: the element type of gradients in messages.
template <class C, class T, class Reduced = Accumulated<T>>
inline constexpr bool may_see_memory =
    comm::HasCommonMemory<C, T> && !comm::HasDeviceBuffers<C> && std::same_as<T, Accumulated<T>> && std::same_as<Reduced, Accumulated<T>>;

/// Memory for units that ranks share, allocated by the communicators of their groups. Ranks that see each other's memory need no message to
/// reduce gradients to slices and to gather parameters from slices: a rendezvous before and after is enough. If calls take device memory,
/// the communicators allocate all memory of units that calls reduce or gather.
template <comm::Communicator C, class D, class T, class Reduced = Accumulated<T>>
class UnitMemory {
  using Gradient = Accumulated<T>;
  using Values = CallMemory<C, D, T>;
  using Gradients = CallMemory<C, D, Gradient>;
  static constexpr bool sees_memory = may_see_memory<C, T, Reduced>;

 public:
  /// Every rank of each group makes this call.
  UnitMemory(const Groups<C>& groups, const D& device, const plan::Plan& plan, const plan::Outline& model);
  UnitMemory(const UnitMemory&) = delete;
  UnitMemory& operator=(const UnitMemory&) = delete;
  ~UnitMemory();

  /// Returns the memory that a Stage borrows.
  [[nodiscard]] nn::Lent<T> lent();
  /// Returns the memory for sums of slices (see SliceSums).
  [[nodiscard]] std::vector<std::span<Gradient>> lent_scratch();

  /// Returns whether this rank sees a unit's memory on all ranks of its group. Each rank then keeps a slice of the optimizer state.
  [[nodiscard]] bool is_common(int unit) const { return !gradients(unit).empty(); }

  /// Returns a number that identifies a unit and its offset in memory. It is equal on ranks with equal plans and memory.
  [[nodiscard]] std::int64_t mark(int unit) const { return at(unit).mark; }

  /// Returns pointers to the gradients of all ranks, in rank order, each at the beginning of this rank's slice.
  [[nodiscard]] std::span<const Gradient* const> gradients(int unit) const { return at(unit).gradients_of_all; }
  /// Returns pointers to the parameters of all other ranks, each at the beginning of this rank's slice.
  [[nodiscard]] std::span<T* const> others_values(int unit) const { return at(unit).values_of_others; }

  /// Writes the sum over the group to this rank's slice of its own gradients, added up in the order of ranks. All gradients must be
  /// complete. No other rank touches this slice.
  void reduce(const D& device, int unit, std::span<Gradient> own);

 private:
  struct Unit {
    std::vector<const Gradient*> gradients_of_all;  // of all ranks of the group, at this rank's slice
    std::vector<T*> values_of_others;               // of all other ranks, at this rank's slice
    std::int64_t mark = 0;
  };
  static constexpr std::size_t block = 4 * 1024;  // elements; few enough for the L1 cache of a core

  [[nodiscard]] const Unit& at(int unit) const { return units_[as_size(unit)]; }

  void lend(const Groups<C>& groups, const D& device, const plan::Plan& plan, const plan::Outline& model);

  void find_others(std::size_t u, const nn::Layout::Unit& lies, const Groups<C>& groups, const plan::Plan& plan);

  Values values_;
  Gradients gradients_;
  std::vector<Unit> units_;
  std::size_t buffers_ = 0, scratches_ = 0;
  Buffer<Gradient> scratch_;
};

template <comm::Communicator C, class D, class T, class Reduced>
UnitMemory<C, D, T, Reduced>::UnitMemory(const Groups<C>& groups, const D& device, const plan::Plan& plan, const plan::Outline& model)
    : units_(plan.units.size()) {
  if constexpr (sees_memory || comm::HasDeviceBuffers<C>) lend(groups, device, plan, model);
}

template <comm::Communicator C, class D, class T, class Reduced>
UnitMemory<C, D, T, Reduced>::~UnitMemory() = default;

template <comm::Communicator C, class D, class T, class Reduced>
nn::Lent<T> UnitMemory<C, D, T, Reduced>::lent() {
  nn::Lent<T> lent;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    lent.values.push_back(values_[u]);
    lent.gradients.push_back(gradients_[u]);
  }
  for (std::size_t buffer = 0; buffer < buffers_; ++buffer) {
    lent.value_buffers.push_back(values_[units_.size() + buffer]);
    lent.gradient_buffers.push_back(gradients_[units_.size() + buffer]);
  }
  return lent;
}

template <comm::Communicator C, class D, class T, class Reduced>
auto UnitMemory<C, D, T, Reduced>::lent_scratch() -> std::vector<std::span<Gradient>> {
  std::vector<std::span<Gradient>> lent;
  for (std::size_t number = 0; number < scratches_; ++number) lent.push_back(gradients_[units_.size() + buffers_ + number]);
  return lent;
}

template <comm::Communicator C, class D, class T, class Reduced>
void UnitMemory<C, D, T, Reduced>::reduce(const D& device, int unit, std::span<Gradient> own) {
  const std::span<const Gradient* const> all = gradients(unit);
  for (std::size_t begin = 0; begin < own.size(); begin += block) {
    const auto elements = as_index(std::min(block, own.size() - begin));
    const auto part = [&](std::size_t rank) { return Matrix<const Gradient>{all[rank] + begin, 1, elements}; };
    const Matrix<Gradient> sum{own.data() + begin, 1, elements}, scratch{scratch_.data(), 1, elements};
    Matrix<const Gradient> before = part(0);
    for (std::size_t rank = 1; rank < all.size(); ++rank) {  // this rank's own gradients are read before they are overwritten
      const Matrix<Gradient> to = rank == all.size() - 1 ? sum : scratch;
      add(device, before, part(rank), to);
      before = to;
    }
  }
}

template <comm::Communicator C, class D, class T, class Reduced>
void UnitMemory<C, D, T, Reduced>::lend(const Groups<C>& groups, const D& device, const plan::Plan& plan, const plan::Outline& model) {
  const plan::Layout layout = plan::layout(plan, model);
  buffers_ = std::max(layout.values.buffers.size(), layout.gradients.buffers.size());
  scratches_ = layout.scratch.size();
  const std::size_t units = units_.size();
  std::vector<typename Values::Need> values(units + buffers_);  // [unit], then [buffer]
  std::vector<typename Gradients::Need> gradients(units + buffers_ + scratches_);
  for (std::size_t u = 0; u < units; ++u) {
    const nn::Run& run = layout.units[u].run;
    const int group = plan.units[u].group;
    const auto need = [&](auto& needs, const nn::Pieces& pieces, bool keeps_whole) {
      needs[u] = {group, pieces.kept[u]};
      if (!keeps_whole) needs[units + as_size(run.buffer)].share(group, pieces.buffers[as_size(run.buffer)]);
    };
    if (sees_memory && !run.keeps_gradients) continue;  // such units are reduced and gathered by messages
    if (run.slices > 1) need(values, layout.values, run.keeps_values);
    if (!std::same_as<Reduced, Gradient> || !run.has_gradients) continue;
    need(gradients, layout.gradients, run.keeps_gradients);
    if (const auto number = as_size(run.buffer); number < scratches_ && run.slices > 1)
      gradients[units + buffers_ + number].share(group, layout.scratch[number]);
  }
  values_ = {groups, device, values};
  gradients_ = {groups, device, gradients};
  if constexpr (sees_memory)
    for (std::size_t u = 0; u < units; ++u) find_others(u, layout.units[u], groups, plan);
}

template <comm::Communicator C, class D, class T, class Reduced>
void UnitMemory<C, D, T, Reduced>::find_others(std::size_t u, const nn::Layout::Unit& lies, const Groups<C>& groups,
                                               const plan::Plan& plan) {
  Unit& unit = units_[u];
  unit.mark = static_cast<std::int64_t>(gradients_.begin(u)) * 64 + lies.run.first % 64;
  if (values_[u].empty() || gradients_[u].empty() || !values_.is_common(u) || !gradients_.is_common(u)) return;
  C& group = groups[plan.units[u].group];
  const auto begin = as_size(lies.begin());
  for (int rank = 0; rank < group.size(); ++rank) {
    unit.gradients_of_all.push_back(gradients_.of(rank, u).data() + begin);
    if (rank != group.rank()) unit.values_of_others.push_back(values_.of(rank, u).data() + begin);
  }
  if (scratch_.size() == 0) scratch_ = Buffer<Gradient>{as_index(block)};
}

}  // namespace pdp::engine
