#pragma once

/// Definitions for pdp/engine/non_finite_tensor.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/engine/non_finite_tensor.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>

namespace pdp::engine {

PDP_INLINE Index number_of(const nn::Parameter& parameter, const std::vector<nn::LayerParameter>& parameters) {
  const std::string name = parameter.full_name();
  const auto is_same = [&](const nn::LayerParameter& each) {
    return each.parameter.full_name() == name && each.parameter.is_copy == parameter.is_copy;
  };
  return std::ranges::find_if(parameters, is_same) - parameters.begin();
}

namespace detail {

/// Returns whether a tensor is named rather than another one. Of gradients, the one nearest to the loss is the first that was computed.
[[nodiscard]] PDP_INLINE bool comes_first(const NonFiniteTensor& tensor, const NonFiniteTensor& other) {
  if (tensor.kind != other.kind) return tensor.kind < other.kind;
  return tensor.kind == NonFiniteTensor::Kind::gradient ? tensor.number > other.number : tensor.number < other.number;
}

[[nodiscard]] PDP_INLINE std::string name_of(const NonFiniteTensor& tensor, const std::vector<nn::LayerParameter>& parameters) {
  const auto parameter = [&] { return parameters[as_size(tensor.number)].parameter.full_name(); };
  switch (tensor.kind) {
    case NonFiniteTensor::Kind::input:
      return "the input";
    case NonFiniteTensor::Kind::targets:
      return "the targets";
    case NonFiniteTensor::Kind::parameter:
      return text("the parameter ", parameter());
    case NonFiniteTensor::Kind::gradient:
      return text("the gradient of ", parameter());
    case NonFiniteTensor::Kind::none:
      break;
  }
  return {};
}

/// Returns "on rank 1, as on 2 others, 3 of the 64 values of the input are not finite (NaN or infinity)", for the tensor that comes first.
/// `found`: that of each rank.
[[nodiscard]] PDP_INLINE std::string words_of(std::span<const NonFiniteTensor> found, const std::vector<nn::LayerParameter>& parameters) {
  const auto first = std::ranges::min_element(found, comes_first);
  const auto is_same = [&](const NonFiniteTensor& other) { return other.kind == first->kind && other.number == first->number; };
  const auto others = std::ranges::count_if(found, is_same) - 1;
  std::string words =
      text("on rank ", first - found.begin(), others == 0 ? "" : text(", as on ", others, others == 1 ? " other" : " others"), ", ",
           first->not_finite, " of the ", first->elements, " values of ", name_of(*first, parameters),
           first->not_finite == 1 ? " is" : " are", " not finite (NaN or infinity)");
  if (first->row >= 0) words += text(", the first in row ", first->row, " of that rank");
  return words;
}

}  // namespace detail

PDP_INLINE std::string words_of_non_finite_loss(const StepNumbers& numbers, std::int64_t step, std::span<const NonFiniteTensor> found,
                                                const std::vector<nn::LayerParameter>& parameters) {
  using Kind = NonFiniteTensor::Kind;
  const Kind kind = std::ranges::min_element(found, detail::comes_first)->kind;
  return text("step ", step, ": the loss is ", is_nan(numbers.sums.loss) ? "NaN" : "infinite",
              kind == Kind::none
                  ? ", though the inputs, targets, parameters and gradients of all ranks are finite, so the outputs are too large"
                  : text("; ", detail::words_of(found, parameters)),
              kind <= Kind::targets ? "; look at the samples of that step"
                                    : "; lower the learning rate, clip the gradient (clip_norm), look at the samples of that step",
              ", or skip such steps (NonFinite::skip); ",
              numbers.skips ? "the gradient was not finite, so no parameter has been changed"
                            : "the parameters have been updated since, so continue from the last good checkpoint");
}

PDP_INLINE std::string words_of_non_finite_parameters(std::int64_t steps, std::span<const NonFiniteTensor> found,
                                                      const std::vector<nn::LayerParameter>& parameters) {
  return text(
      "after ", steps, steps == 1 ? " step: " : " steps: ", detail::words_of(found, parameters),
      ", so no checkpoint is saved here; lower the learning rate, clip the gradient (clip_norm), or skip such steps (NonFinite::skip), "
      "and continue from the last checkpoint");
}

}  // namespace pdp::engine
