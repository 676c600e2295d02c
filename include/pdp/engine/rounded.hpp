#pragma once

#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/engine/call_memory.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Gradients of units in the element type in which they are sent: memory that is allocated once, and the conversion in both directions.
/// Units whose whole gradients use one buffer in turn share memory here, too.
template <comm::Communicator C, class D, class T, class Reduced>
class RoundedGradients {
  using Gradient = Accumulated<T>;
  using Stage = nn::StageParameters<D, T>;
  using Lent = CallMemory<C, D, Reduced>;

 public:
  RoundedGradients() = default;
  /// Every rank of each group makes this call if calls take device memory.
  RoundedGradients(Stage& stage, const plan::Plan& plan, const Groups<C>& groups);

  /// Rounds the whole gradient of a unit, and returns the result.
  std::span<Reduced> round(Stage& stage, int unit);
  /// Returns the memory for the sum of this rank's slice of a unit.
  std::span<Reduced> own(Stage& stage, int unit);
  /// Converts a sum to the type of gradients. `to`: the gradients, or scratch memory that is added to the gradients of earlier
  /// micro-batches.
  void spread(Stage& stage, std::span<const Reduced> sum, std::span<Gradient> to) {
    convert(stage.device(), view<const Reduced>(sum), view<Gradient>(to));
  }
  /// Returns the memory for the whole rounded gradient of a unit, or for its sum.
  [[nodiscard]] std::span<Reduced> whole(int unit, std::size_t elements) { return memory(unit).first(elements); }

 private:
  [[nodiscard]] std::span<Reduced> memory(int unit);
  template <class E, class Span>
  static Matrix<E> view(Span values) {
    return {values.data(), 1, as_index(values.size())};
  }

  std::vector<std::size_t> places_;  // [unit]
  Lent lent_;                        // [place], allocated by the communicators
  std::vector<DeviceMemory<D, Reduced>> own_;
};

template <comm::Communicator C, class D, class T, class Reduced>
RoundedGradients<C, D, T, Reduced>::RoundedGradients(Stage& stage, const plan::Plan& plan, const Groups<C>& groups) {
  static_assert(sizeof(Reduced) == sizeof(BFloat16), "the elements have the size that plan::layout assumes");
  const plan::Layout layout = plan::layout(plan, stage.outline());
  places_ = layout.rounded_place;
  std::vector<typename Lent::Need> needs(layout.rounded.size());  // [place]
  for (std::size_t u = 0; u < places_.size(); ++u) needs[places_[u]].share(plan.units[u].group, layout.rounded[places_[u]]);
  if constexpr (comm::HasDeviceBuffers<C>) lent_ = {groups, stage.device(), needs};
  for (std::size_t place = 0; place < needs.size(); ++place)
    own_.push_back(allocate<Reduced>(stage.device(), lent_[place].empty() ? needs[place].elements : 0));
}

template <comm::Communicator C, class D, class T, class Reduced>
std::span<Reduced> RoundedGradients<C, D, T, Reduced>::round(Stage& stage, int unit) {
  const std::span<Gradient> from = stage.gradients(unit);
  const std::span<Reduced> to = whole(unit, from.size());
  convert(stage.device(), view<const Gradient>(from), view<Reduced>(to));
  return to;
}

template <comm::Communicator C, class D, class T, class Reduced>
std::span<Reduced> RoundedGradients<C, D, T, Reduced>::own(Stage& stage, int unit) {
  const auto begin = as_size(padded<Reduced>(as_index(stage.gradients(unit).size())));
  return memory(unit).subspan(begin, stage.own_gradients(unit).size());
}

template <comm::Communicator C, class D, class T, class Reduced>
std::span<Reduced> RoundedGradients<C, D, T, Reduced>::memory(int unit) {
  const std::size_t place = places_[as_size(unit)];
  const std::span<Reduced> lent = lent_[place];
  return lent.empty() ? own_[place].span() : lent;
}

}  // namespace pdp::engine
