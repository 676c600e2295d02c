#pragma once

#include <algorithm>
#include <concepts>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/plan/liveness.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// The memory of the tensors at boundaries and of the tensors that layers save, for the micro-batches of a step and of an evaluation.
/// Borrows the outline.
template <class D, class T>
class BoundaryMemory {
 public:
  using Slot = nn::Slot<T>;

  /// `micro_rows`: rows of a full micro-batch. `numbers`: those of steps, in the device's memory.
  BoundaryMemory(const D& device, const plan::Plan& plan, const nn::Outline& model, Index micro_rows, const StepNumbers* numbers = nullptr);
  BoundaryMemory(const BoundaryMemory&) = delete;
  BoundaryMemory& operator=(const BoundaryMemory&) = delete;
  ~BoundaryMemory();

  [[nodiscard]] std::span<Slot> slots_when(bool training) { return training ? step_ : evaluation_; }
  [[nodiscard]] const Slot& evaluation() const { return evaluation_.front(); }

  /// Cuts the rows of a batch into micro-batches. The input is read in place. `first_row`: the number of the first row among those of all
  /// ranks.
  /// The elements are tokens or of type T.
  template <class Sample>
  void cut(Matrix<const Sample> x, bool training, Index first_row = 0);

  /// Returns whether the rows of a layer's tensors are contiguous over all micro-batches, and the layer neither saves nor pauses.
  [[nodiscard]] bool lie_together(std::span<const Slot> all, int layer) const;

 private:
  [[nodiscard]] std::vector<Slot> slots_of(const plan::Liveness& list, int micro_batches);

  const nn::Outline& model_;
  Index micro_rows_;
  DeviceMemory<D, T> memory_;
  DeviceMemory<D, double> batch_sums_;  // of each micro-batch of a step
  std::vector<Slot> step_, evaluation_;
};

template <class D, class T>
BoundaryMemory<D, T>::~BoundaryMemory() = default;

template <class D, class T>
BoundaryMemory<D, T>::BoundaryMemory(const D& device, const plan::Plan& plan, const nn::Outline& model, Index micro_rows,
                                     const StepNumbers* numbers)
    : model_{model}, micro_rows_{micro_rows} {
  const plan::Boundaries boundaries{model, plan};
  memory_ = allocate<T>(device, boundaries.row_elements() * micro_rows);
  step_ = slots_of(boundaries.step, plan.micro_batches);
  evaluation_ = slots_of(boundaries.evaluation, 1);
  for (Slot& slot : step_) slot.pass = {.is_training = true, .numbers = numbers};
  const Index sums = model.batch_sums();
  if (sums == 0) return;
  batch_sums_ = allocate<double>(device, sums * as_index(step_.size()));
  double* next = batch_sums_.data();
  for (Slot& slot : step_) {
    for (const nn::Outline::Layer& layer : model.layers) {
      slot.batch_sums.push_back(next);
      next += layer.batch_sums;
    }
  }
}

template <class D, class T>
template <class Sample>
void BoundaryMemory<D, T>::cut(Matrix<const Sample> x, bool training, Index first_row) {
  const auto& layers = model_.layers;
  Index first = 0;
  for (Slot& slot : slots_when(training)) {
    slot.rows = std::min(micro_rows_, x.rows - first);
    slot.first_row = first;
    slot.pass.first_row = first_row + first;
    if constexpr (std::same_as<Sample, T>) {
      T* const rows = const_cast<T*>(x.data) + first * x.cols;  // never written: no layer writes over the batch
      slot.activations[0] = rows;
      for (std::size_t layer = 0; layer < layers.size() && layers[layer].is_view; ++layer) slot.activations[layer + 1] = rows;
    } else {
      slot.tokens = x.data + first * x.cols;
    }
    first += slot.rows;
  }
}

template <class D, class T>
bool BoundaryMemory<D, T>::lie_together(std::span<const Slot> all, int layer) const {
  const nn::Outline::Layer& of = model_.layers[as_size(layer)];
  if (of.saved > 0 || of.pauses > 0 || of.is_frozen || (layer == 0 && all.front().tokens != nullptr)) return false;
  const auto follow = [&](const std::vector<T*> Slot::*tensors, int boundary) {
    const auto b = as_size(boundary);
    for (std::size_t m = 1; m < all.size(); ++m)
      if (all[m].rows > 0 && (all[m].*tensors)[b] != (all[m - 1].*tensors)[b] + all[m - 1].rows * model_.width(boundary)) return false;
    return true;
  };
  return follow(&Slot::activations, layer) && follow(&Slot::activations, layer + 1) && follow(&Slot::gradients, layer + 1);
}

template <class D, class T>
auto BoundaryMemory<D, T>::slots_of(const plan::Liveness& list, int micro_batches) -> std::vector<Slot> {
  std::vector<Slot> made(as_size(micro_batches), Slot{model_.size()});
  const auto at = [&](plan::Kind kind, int m, int number) {
    const Index offset = list.offset(kind, m, number);
    return offset == plan::Liveness::nowhere ? nullptr : memory_.data() + offset * micro_rows_;
  };
  for (int m = 0; m < micro_batches; ++m) {
    for (int number = 0; number <= model_.size(); ++number) {
      const auto n = as_size(number);
      made[as_size(m)].activations[n] = at(plan::Kind::activation, m, number);
      made[as_size(m)].gradients[n] = at(plan::Kind::gradient, m, number);
      if (number < model_.size()) made[as_size(m)].saved[n] = at(plan::Kind::saved, m, number);
    }
  }
  return made;
}

}  // namespace pdp::engine
