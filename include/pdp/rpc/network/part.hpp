#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/nn/stage_parameters.hpp>

namespace pdp::rpc {

/// The tensors of one forward call on one device, until its backward call.
template <class D>
struct CallTensors {
  Index capacity = 0;  // rows
  DeviceMemory<D, float> memory{};
  nn::Slot<float> slot;
  float* input = nullptr;  // memory for the input, if the device cannot read it in place
};

/// Consecutive layers of a model, first to last - 1, on one device. Their mathematics is that of nn::Stage.
template <nn::Block Model, class D>
class NetworkPart {
  static_assert(!nn::any_uses_row_numbers<nn::LeafTypes<Model>>,
                "pdp: layers that draw random numbers cannot be in a remote network, which does not number its rows; train the model with "
                "a Trainer");
  static_assert(!nn::any_sums_over_batch<nn::LeafTypes<Model>>,
                "pdp: layers that add up over the batch, such as nn::BatchNorm, cannot be in a remote network; use nn::GroupNorm, or train "
                "the model with a Trainer");
  static_assert(!nn::any_takes_tokens<nn::LeafTypes<Model>>,
                "pdp: layers that take tokens cannot be in a remote network, whose messages are numbers; train the model with a Trainer");

 public:
  using Stage = nn::Stage<nn::LeafTypes<Model>, D, float>;
  using Tensors = CallTensors<D>;
  using Gradients = DeviceMemory<D, float>;

  NetworkPart(const Model& model, const Shape& input, const nn::Path& at, int first, int last, std::uint64_t seed, D device)
      : stage_{model, input, {nn::Run{.first = first, .last = last}}, seed, device, {}, at}, first_{first}, last_{last} {
    for (const nn::LayerParameter& each : stage_.of_model()) {
      if (each.parameter.is_buffer)
        throw ConfigError{
            text("the buffer ", each.parameter.full_name(), " cannot be in a remote network: only a Trainer updates buffers")};
      if (each.parameter.layer.is_frozen())
        throw ConfigError{text(each.parameter.full_name(),
                               " is inside an nn::Frozen, which cannot be in a remote network; train the model with a Trainer")};
    }
    const nn::Outline& outline = stage_.outline();
    for (int boundary = first; boundary <= last; ++boundary) widest_ = std::max(widest_, outline.width(boundary));
  }

  [[nodiscard]] Stage& stage() { return stage_; }
  [[nodiscard]] const D& device() const { return stage_.device(); }
  [[nodiscard]] Index in_width() const { return stage_.outline().width(first_); }
  [[nodiscard]] Index out_width() const { return stage_.outline().width(last_); }

  /// Returns tensors for a forward call with this many rows. They go back to give_back(). `is_training`: whether a backward call follows.
  [[nodiscard]] std::unique_ptr<Tensors> take(Index rows, bool is_training) {
    const auto fits = std::ranges::find_if(free_, [rows](const auto& each) { return each->capacity >= rows; });
    std::unique_ptr<Tensors> tensors;
    if (fits != free_.end()) {
      tensors = std::move(*fits);
      free_.erase(fits);
    } else {
      tensors = make(rows);
    }
    tensors->slot.rows = rows;
    tensors->slot.pass = {.is_training = is_training};
    return tensors;
  }
  void give_back(std::unique_ptr<Tensors> tensors) {
    constexpr std::size_t most = 64;
    if (tensors && free_.size() < most) free_.push_back(std::move(tensors));
  }

  /// Computes the layers. `x`: the input in host memory, which must remain until the backward call.
  void forward(Tensors& tensors, Matrix<const float> x) {
    auto* in = const_cast<float*>(x.data);  // never written: no layer writes over the input
    if constexpr (!D::uses_host_memory) {
      upload(device(), x.values(), tensors.input);
      in = tensors.input;
    }
    const nn::Outline& outline = stage_.outline();
    tensors.slot.activations[as_size(first_)] = in;
    for (int layer = first_; layer < last_ && outline.layers[as_size(layer)].is_view; ++layer)
      tensors.slot.activations[as_size(layer) + 1] = in;
    stage_.forward(tensors.slot, first_, last_);
  }
  /// Returns the output, and its gradient, in device memory.
  [[nodiscard]] Matrix<float> output(const Tensors& tensors) const { return stage_.activation(tensors.slot, last_); }
  [[nodiscard]] Matrix<float> output_gradient(const Tensors& tensors) const { return stage_.gradient(tensors.slot, last_); }

  /// Computes the gradients of the parameters from output_gradient(), and adds them to `sum` if `accumulate` is true. Returns the gradient
  /// of the input in device memory, valid until the next call, if it is needed.
  Matrix<const float> backward(Tensors& tensors, Gradients& sum, bool accumulate, bool needs_input) {
    stage_.keep_gradients_in(0, sum.span());
    nn::Slot<float>& slot = tensors.slot;
    for (auto& each : scratch_)
      if (each.size() < widest_ * slot.rows) each = allocate<float>(device(), widest_ * slot.rows);
    std::size_t next = 0;
    for (int layer = last_ - 1; layer >= first_; --layer) {
      const auto number = as_size(layer);
      slot.gradients[number] = stage_.outline().layers[number].is_view ? slot.gradients[number + 1] : scratch_[next ^= 1].data();
      stage_.backward_input(slot, layer, layer + 1, needs_input);
      stage_.backward_weight(slot, layer, layer + 1, accumulate);
    }
    return needs_input ? stage_.gradient(slot, first_) : Matrix<float>{};
  }

  /// Returns memory for the gradients of all parameters of the part.
  [[nodiscard]] Gradients gradients() { return allocate<float>(device(), as_index(stage_.gradients(0).size())); }

 private:
  [[nodiscard]] std::unique_ptr<Tensors> make(Index rows) {
    const nn::Outline& outline = stage_.outline();
    auto made = std::make_unique<Tensors>(Tensors{.capacity = rows, .slot = nn::Slot<float>{outline.size()}});
    Index elements = 0;
    const auto place = [&](Index width) { return std::exchange(elements, elements + padded<float>(width * rows)); };
    std::vector<Index> activations(as_size(outline.size()) + 1), saved(as_size(outline.size()));
    const Index input = D::uses_host_memory ? 0 : place(outline.width(first_));
    for (int layer = first_; layer < last_; ++layer) {
      const auto number = as_size(layer);
      const nn::Outline::Layer& each = outline.layers[number];
      const bool in_place = layer > first_ && (each.is_view || (each.works_in_place && outline.layers[number - 1].forgets_output));
      activations[number + 1] = in_place ? activations[number] : place(each.out);
      saved[number] = place(each.saved);
    }
    const Index gradient = place(out_width());
    made->memory = allocate<float>(device(), elements);
    float* const memory = made->memory.data();
    made->input = memory + input;
    for (auto number = as_size(first_); number < as_size(last_); ++number) {
      made->slot.activations[number + 1] = memory + activations[number + 1];
      made->slot.saved[number] = memory + saved[number];
    }
    made->slot.gradients[as_size(last_)] = memory + gradient;
    return made;
  }

  Stage stage_;
  int first_, last_;
  Index widest_ = 0;                               // values of a sample at a boundary
  std::array<DeviceMemory<D, float>, 2> scratch_;  // gradients between layers, in turn
  std::vector<std::unique_ptr<Tensors>> free_;
};

}  // namespace pdp::rpc
