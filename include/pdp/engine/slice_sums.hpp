#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Memory for the sums of units' slices, before they are added to the sums of earlier micro-batches. Each gradient buffer has one piece,
/// which its units use in turn. `lent`: pieces that another object owns; the others are allocated here.
template <class D, class T>
class SliceSums {
 public:
  using Gradient = Accumulated<T>;

  SliceSums(const D& device, const plan::Plan& plan, const nn::Outline& model, const std::vector<std::span<Gradient>>& lent);

  /// Returns the piece of a unit. A slice may need only the beginning of it.
  [[nodiscard]] std::span<Gradient> operator[](int unit) const { return pieces_[piece_of_[as_size(unit)]]; }

 private:
  std::vector<DeviceMemory<D, Gradient>> own_;
  std::vector<std::span<Gradient>> pieces_;
  std::vector<std::size_t> piece_of_;  // [unit]
};

template <class D, class T>
SliceSums<D, T>::SliceSums(const D& device, const plan::Plan& plan, const nn::Outline& model,
                           const std::vector<std::span<Gradient>>& lent) {
  for (const plan::Unit& unit : plan.units) piece_of_.push_back(as_size(unit.buffer));
  for (const Index elements : plan::layout(plan, model).scratch) {
    const std::size_t number = pieces_.size();
    const bool is_lent = number < lent.size() && !lent[number].empty();
    own_.push_back(allocate<Gradient>(device, is_lent ? 0 : elements));
    pieces_.push_back(is_lent ? lent[number] : own_.back().span());
  }
}

}  // namespace pdp::engine
