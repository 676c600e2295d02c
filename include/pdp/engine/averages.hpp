#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// The parameters that a rank keeps, set aside while the averages of optim::Averaged are in their place.
template <class D, class T>
class Averages {
  using Stage = nn::StageParameters<D, T>;
  using Gradient = typename Stage::Gradient;

 public:
  /// Whether the averages are in place of the parameters.
  [[nodiscard]] bool are_used() const { return are_used_; }
  /// Throws ConfigError if they are. For calls that need the parameters.
  void check_unused(const char* call) const {
    if (are_used_)
      throw ConfigError{text(call,
                             " needs the parameters of the model, but their averages are in their place; make this call after "
                             "with_averages()")};
  }

  /// Puts the averages in place of the parameters, and gathers them on ranks that keep whole units. Every rank makes this call, after it
  /// has waited for its device. `are_known`: whether the parameters have been updated. Otherwise there are no averages, and nothing
  /// changes. put(unit) writes the averages of this rank's slice of a unit over the parameters.
  template <comm::Communicator C>
  void use(const Groups<C>& groups, const plan::Plan& plan, Stage& stage, bool are_known, const std::function<void(int)>& put) {
    check_unused("with_averages()");
    are_used_ = true;
    if (!are_known) return;
    const std::vector<nn::Run> runs = plan::runs(plan, stage.outline());
    for (std::size_t u = 0; u < runs.size(); ++u) {
      const int unit = as_int(u);
      const std::span<T> whole = stage.values(unit), own = stage.own_values(unit);
      const std::span<T> kept = runs[u].keeps_values ? whole : own;
      const std::span<Gradient> masters = Stage::has_masters ? stage.own_masters(unit) : std::span<Gradient>{};
      aside_.push_back(
          {kept, allocate<T>(stage.device(), as_index(kept.size())), allocate<Gradient>(stage.device(), as_index(masters.size()))});
      copy(stage.device(), std::span<const T>{kept}, aside_.back().values.data());
      if constexpr (Stage::has_masters) copy(stage.device(), std::span<const Gradient>{masters}, aside_.back().masters.data());
      put(unit);
      if (runs[u].slices > 1 && runs[u].keeps_values)
        start_all_gather(groups[plan.units[u].group], stage.device(), std::span<const T>{own}, whole).wait();
    }
  }
  /// Puts the parameters back in their place. Needs no other rank.
  void leave(Stage& stage) {
    for (std::size_t u = 0; u < aside_.size(); ++u) {
      const Unit& unit = aside_[u];
      copy(stage.device(), unit.values.span(), unit.place.data());
      if constexpr (Stage::has_masters) copy(stage.device(), unit.masters.span(), stage.own_masters(as_int(u)).data());
    }
    aside_.clear();
    are_used_ = false;
  }

 private:
  struct Unit {
    std::span<T> place;  // of the values
    DeviceMemory<D, T> values;
    DeviceMemory<D, Gradient> masters;
  };
  std::vector<Unit> aside_;  // [unit]; empty if nothing is set aside
  bool are_used_ = false;
};

}  // namespace pdp::engine
