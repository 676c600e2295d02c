#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>

/// The search for the tensor that makes a loss NaN or infinite. It reads what lies in memory after the step, and involves no other rank.
namespace pdp::engine {

/// A tensor of one rank with values that are not finite.
struct NonFiniteTensor {
  /// In the order in which tensors are named: a wrong sample makes all parameters and gradients wrong.
  enum class Kind : std::int64_t { input, targets, parameter, gradient, none };
  Kind kind = Kind::none;
  Index number = -1;                   // of a parameter, or of the parameter of a gradient: its number in the model
  Index not_finite = 0, elements = 0;  // values that this rank has
  Index row = -1;                      // of a batch: the first row with such a value

  [[nodiscard]] explicit operator bool() const { return kind != Kind::none; }
};

/// Returns the tensor if it has values that are not finite, else an empty result. `values`: in host memory. `width`: values of a row.
template <class Values>
[[nodiscard]] NonFiniteTensor look_at(NonFiniteTensor::Kind kind, Index number, const Values& values, Index width = 0) {
  NonFiniteTensor found{kind, number};
  for (const auto value : values) {
    if (!is_finite(value) && found.not_finite++ == 0 && width > 0) found.row = found.elements / width;
    ++found.elements;
  }
  return found.not_finite > 0 ? found : NonFiniteTensor{};
}

/// Looks at the inputs and at the targets of a batch, if the rank reads them. Integers are finite.
template <class D, class Sample, class Target>
[[nodiscard]] NonFiniteTensor find_in_batch(const D& device, const Batch<Sample, Target>& batch, bool reads_inputs, bool reads_targets) {
  using Kind = NonFiniteTensor::Kind;
  NonFiniteTensor found;
  if (batch.x.rows == 0) return found;
  if constexpr (!std::integral<Sample>)
    if (reads_inputs) found = look_at(Kind::input, 0, on_host(device, std::span<const Sample>{batch.x.values()}), batch.x.cols);
  if constexpr (std::floating_point<Target>)
    if (!found && reads_targets)
      found = look_at(Kind::targets, 0, on_host(device, batch.targets), as_index(batch.targets.size()) / batch.x.rows);
  return found;
}

/// Returns the first parameter of the model with such values, among the parts that this rank keeps.
template <class D, class T>
[[nodiscard]] NonFiniteTensor find_in_parameters(nn::StageParameters<D, T>& stage);
/// Returns the gradient of the parameter nearest to the loss, among those that are complete on this rank. `frozen`: whether a parameter is
/// never updated, so that its gradient has no meaning.
template <class D, class T>
[[nodiscard]] NonFiniteTensor find_in_gradients(nn::StageParameters<D, T>& stage, const plan::Plan& plan,
                                                const std::function<bool(const nn::Parameter&)>& frozen);

/// Returns the message of a NonFiniteLoss: the step, its loss, and the tensor that comes first among those of all ranks. `found`: that of
/// each rank, in their order. The parameters are those of the model.
[[nodiscard]] std::string words_of_non_finite_loss(const StepNumbers& numbers, std::int64_t step, std::span<const NonFiniteTensor> found,
                                                   const std::vector<nn::LayerParameter>& parameters);

/// Returns the message of a NonFiniteLoss that parameters cause before a loss does. At least one rank has found a tensor.
[[nodiscard]] std::string words_of_non_finite_parameters(std::int64_t steps, std::span<const NonFiniteTensor> found,
                                                         const std::vector<nn::LayerParameter>& parameters);

/// Returns the number of a parameter in the model.
[[nodiscard]] Index number_of(const nn::Parameter& parameter, const std::vector<nn::LayerParameter>& parameters);

template <class D, class T>
NonFiniteTensor find_in_parameters(nn::StageParameters<D, T>& stage) {
  NonFiniteTensor found;
  stage.for_each_kept([&]<class E>(const nn::Parameter& parameter, Index, std::span<E> values) {
    if constexpr (std::same_as<E, T>)  // the values are rounded masters
      if (!found)
        found = look_at(NonFiniteTensor::Kind::parameter, number_of(parameter, stage.of_model()),
                        on_host(stage.device(), std::span<const E>{values}));
  });
  return found;
}

template <class D, class T>
NonFiniteTensor find_in_gradients(nn::StageParameters<D, T>& stage, const plan::Plan& plan,
                                  const std::function<bool(const nn::Parameter&)>& frozen) {
  using Gradient = Accumulated<T>;
  NonFiniteTensor nearest;
  const auto runs = plan::runs(plan, stage.outline());
  for (std::size_t u = 0; u < runs.size(); ++u) {
    stage.for_each_gradient(as_int(u), [&](const nn::Parameter& parameter, int, std::span<Gradient> whole, std::span<Gradient> own) {
      const Index number = number_of(parameter, stage.of_model());
      if (number <= nearest.number || frozen(parameter)) return;
      // Another unit may have used the buffer of a gradient that is not kept whole.
      const std::span<const Gradient> kept = runs[u].keeps_gradients ? whole : own;
      if (const auto found = look_at(NonFiniteTensor::Kind::gradient, number, on_host(stage.device(), kept))) nearest = found;
    });
  }
  return nearest;
}

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/non_finite_tensor.hpp>
#endif
