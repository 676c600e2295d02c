#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/parallel/groups.hpp>
#include <pdp/parallel/runs.hpp>

namespace pdp::parallel {

/// Whether ranks over a communicator may see each other's memory, by the communicator's type.
template <class C, class T>
inline constexpr bool may_see_memory = comm::HasCommonMemory<C, T> && !comm::HasDeviceBuffers<C> && std::same_as<T, Accumulated<T>>;

/// Memory for units that ranks share, from the communicators of their groups. Where the ranks of a group see each other's, they need no
/// message to reduce gradients to slices and to gather parameters from them: it is enough that they wait for each other before the one and
/// after the other.
template <comm::Communicator C, class T>
class UnitMemory {
  using Gradient = Accumulated<T>;

 public:
  /// Every rank of each group makes this call. A unit of which this rank keeps a slice only gets none.
  UnitMemory(const Groups<C>& groups, const Plan& plan, const Outline& model) : units_(plan.units.size()) {
    if constexpr (may_see_memory<C, T>)
      for (int number = 0; number < groups.size(); ++number) lend(groups[number], number, plan, model);
  }

  /// None.
  explicit UnitMemory(const Plan& plan) : units_(plan.units.size()) {}

  /// Of each unit, as a Stage takes it.
  [[nodiscard]] nn::Lent<T> lent() const {
    nn::Lent<T> lent;
    for (const Unit& each : units_) {
      lent.values.push_back(each.values);
      lent.gradients.push_back(each.gradients);
    }
    return lent;
  }

  /// Whether this rank sees all of its group's, and they keep slices of the optimizer's state.
  [[nodiscard]] bool is_common(int unit) const { return !gradients(unit).empty(); }

  /// Says which unit it is, and where it lies: equal on ranks whose plans and memory are alike.
  [[nodiscard]] std::int64_t mark(int unit) const { return at(unit).mark; }

  /// Of all ranks, in their order: this rank's slice of the gradients.
  [[nodiscard]] std::span<const Gradient* const> gradients(int unit) const { return at(unit).gradients_of_all; }
  /// Of all ranks but this one: this rank's slice of the parameters.
  [[nodiscard]] std::span<T* const> others_values(int unit) const { return at(unit).values_of_others; }

  /// Leaves in this rank's slice of its own gradients the sum over the group, added up in the order of ranks. All of them are there; nobody
  /// else touches this slice.
  template <class D>
  void reduce(const D& device, int unit, std::span<Gradient> own) {
    const std::span<const Gradient* const> all = gradients(unit);
    for (std::size_t begin = 0; begin < own.size(); begin += block) {
      const auto elements = static_cast<Index>(std::min(block, own.size() - begin));
      const auto part = [&](std::size_t rank) { return Matrix<const Gradient>{all[rank] + begin, 1, elements}; };
      const Matrix<Gradient> sum{own.data() + begin, 1, elements}, scratch{scratch_.data(), 1, elements};
      Matrix<const Gradient> before = part(0);
      for (std::size_t rank = 1; rank < all.size(); ++rank) {  // this rank's own are read before they are written
        const Matrix<Gradient> to = rank == all.size() - 1 ? sum : scratch;
        add(device, before, part(rank), to);
        before = to;
      }
    }
  }

 private:
  struct Unit {
    std::span<T> values;
    std::span<Gradient> gradients;
    std::vector<const Gradient*> gradients_of_all;  // the gradients of the group's ranks, in this rank's slice
    std::vector<T*> values_of_others;               // the values of all but this one, there
    std::int64_t mark = 0;
  };
  static constexpr std::size_t block = 4 * 1024;  // elements that stay in a core's nearest cache

  [[nodiscard]] const Unit& at(int unit) const { return units_[static_cast<std::size_t>(unit)]; }

  void lend(C& group, int number, const Plan& plan, const Outline& model) {
    const std::vector<nn::Run> all = runs(plan);
    const auto sizes = [&](std::size_t u) {  // of values, which lie here only where they are published, and of gradients
      const std::size_t whole = slice(model, all[u]) * static_cast<std::size_t>(all[u].slices);
      return std::array{all[u].slices > 1 ? whole : 0, whole};
    };
    std::vector<std::size_t> members;
    std::size_t sum = 0;
    for (std::size_t u = 0; u < all.size(); ++u)
      if (plan.units[u].group == number && all[u].keeps_gradients) {
        members.push_back(u);
        sum += sizes(u)[0] + sizes(u)[1];
      }
    if (sum == 0 || group.size() == 1) return;
    comm::Registered<T>& memory = memory_.emplace_back(group.template allocate<T>(sum));
    std::size_t begin = 0;
    for (const std::size_t u : members) {
      const auto [of_values, of_gradients] = sizes(u);
      Unit& unit = units_[u];
      unit.values = memory.span().subspan(begin, of_values);
      unit.gradients = memory.span().subspan(begin + of_values, of_gradients);
      unit.mark = static_cast<std::int64_t>(begin) * 64 + all[u].first % 64;
      if (memory.is_common() && of_values > 0)
        for (int rank = 0; rank < group.size(); ++rank) {
          T* const there = memory.of(rank).data() + begin + slice(model, all[u]) * static_cast<std::size_t>(all[u].slice);
          unit.gradients_of_all.push_back(there + of_values);
          if (rank != group.rank()) unit.values_of_others.push_back(there);
        }
      begin += of_values + of_gradients;
    }
    if (memory.is_common()) scratch_ = Buffer<Gradient>{static_cast<Index>(block)};
  }
  static std::size_t slice(const Outline& model, const nn::Run& run) { return static_cast<std::size_t>(nn::slice_elements(model, run)); }

  std::vector<comm::Registered<T>> memory_;
  std::vector<Unit> units_;
  Buffer<Gradient> scratch_;
};

}  // namespace pdp::parallel
