#pragma once

#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/engine/call_memory.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Gradients of units as they travel, rounded to another element type: memory that is made once, and the way there and back. Units of which
/// the whole gradient lies in one buffer, one after another, have one place here, too.
template <comm::Communicator C, class Stage, class Reduced>
class RoundedGradients {
  using T = typename Stage::Gradient;
  using Lent = CallMemory<C, typename Stage::Device, Reduced>;

 public:
  RoundedGradients() = default;
  /// Where calls take memory of a device, every rank of each group makes this call.
  RoundedGradients(Stage& stage, const plan::Plan& plan, const Groups<C>& groups) {
    static_assert(sizeof(Reduced) == sizeof(BFloat16), "places are as long as plan::layout says");
    const plan::Layout layout = plan::layout(plan, stage.outline());
    places_ = layout.rounded_place;
    std::vector<typename Lent::Need> needs(layout.rounded.size());  // of places
    for (std::size_t u = 0; u < places_.size(); ++u) needs[places_[u]].share(plan.units[u].group, layout.rounded[places_[u]]);
    if constexpr (comm::HasDeviceBuffers<C>) lent_ = {groups, stage.device(), needs};
    for (std::size_t place = 0; place < needs.size(); ++place)
      own_.push_back(allocate<Reduced>(stage.device(), lent_[place].empty() ? needs[place].elements : 0));
  }

  /// The whole of a unit, rounded.
  std::span<Reduced> round(Stage& stage, int unit) {
    const std::span<T> from = stage.gradients(unit);
    const std::span<Reduced> to = whole(unit, from.size());
    convert(stage.device(), view<const T>(from), view<Reduced>(to));
    return to;
  }
  /// Where the sum of this rank's slice of a unit comes.
  std::span<Reduced> own(Stage& stage, int unit) {
    const auto begin = as_size(padded<Reduced>(as_index(stage.gradients(unit).size())));
    return memory(unit).subspan(begin, stage.own_gradients(unit).size());
  }
  /// Puts a sum where gradients lie, or where those are added up that earlier micro-batches have left.
  void spread(Stage& stage, std::span<const Reduced> sum, std::span<T> to) {
    convert(stage.device(), view<const Reduced>(sum), view<T>(to));
  }
  [[nodiscard]] std::span<Reduced> whole(int unit, std::size_t elements) { return memory(unit).first(elements); }

 private:
  [[nodiscard]] std::span<Reduced> memory(int unit) {
    const std::size_t place = places_[as_size(unit)];
    const std::span<Reduced> lent = lent_[place];
    return lent.empty() ? own_[place].span() : lent;
  }
  template <class E, class Span>
  static Matrix<E> view(Span values) {
    return {values.data(), 1, as_index(values.size())};
  }

  std::vector<std::size_t> places_;  // of units
  Lent lent_;                        // of places, by the communicators
  std::vector<DeviceMemory<typename Stage::Device, Reduced>> own_;
};

}  // namespace pdp::engine
