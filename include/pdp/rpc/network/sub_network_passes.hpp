#pragma once

/// Definitions of the larger members of SubNetwork, which pdp/rpc/sub_network.hpp includes.

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/rpc/network/requests.hpp>
#include <pdp/rpc/owned_matrix.hpp>
#include <pdp/rpc/sub_network.hpp>

namespace pdp::rpc {

template <nn::Block Model, class D>
template <class L>
LossSums SubNetwork<Model, D>::loss(const CallId& id, const OwnedMatrix& /*y*/, const L& loss,
                                    const std::vector<typename L::Target>& targets, Index rows) {
  static_assert(loss::Loss<L, D>, "pdp: the loss is not a pdp::loss::Loss on this device (see loss/loss.hpp)");
  using Target = typename L::Target;
  Call& call = find(id);
  const Matrix<const float> output = parts_.back().output(*call.tensors.back());
  const Index expected = loss.target_elements(output.cols) * output.rows;
  if (as_index(targets.size()) != expected)
    throw ShapeError{text("the loss got ", targets.size(), " target values for ", output.rows, " rows; expected ", expected)};
  if constexpr (requires { loss.check(std::span<const Target>{targets}, output.cols); }) loss.check(targets, output.cols);
  LossSums sums;
  add_output_gradient(call, [&](Matrix<float> gradient) {
    const D& device = parts_.back().device();
    auto uploaded = allocate<Target>(device, D::uses_host_memory ? 0 : expected);
    std::span<const Target> there = targets;
    if constexpr (!D::uses_host_memory) {
      upload(device, there, uploaded.data());
      there = uploaded.span();
    }
    auto numbers = allocate<StepNumbers>(device, 1);
    store(device, StepNumbers{.scale = 1 / static_cast<double>(rows)}, numbers.data());
    loss(device, output, there, &numbers.data()->scale, gradient, &numbers.data()->sums);
    sums = on_host(device, std::span<const StepNumbers>{numbers.span()}).front().sums;
  });
  return sums;
}

template <nn::Block Model, class D>
void SubNetwork<Model, D>::add_gradient(const CallId& id, const OwnedMatrix& gradient) {
  Call& call = find(id);
  const Matrix<float> output = parts_.back().output_gradient(*call.tensors.back());
  gradient.check("the gradient of the network's output", output.cols);
  if (gradient.rows != output.rows)
    throw ShapeError{text("the gradient of the network's output has ", gradient.rows, " rows; the output has ", output.rows)};
  add_output_gradient(call, [&](Matrix<float> to) { upload(parts_.back().device(), gradient.matrix().values(), to.data); });
}

template <nn::Block Model, class D>
OwnedMatrix SubNetwork<Model, D>::backward(const CallId& id, bool needs_input) {
  Call& call = find(id);
  if (!call.has_gradient) throw Error{text("forward call ", id.number, " of this network has no gradient of its output")};
  Recorded& context = contexts_.at(id.context);
  const bool is_first = context.backward_calls == 0;
  if (is_first && free_gradients_.empty()) free_gradients_.push_back(parts_.gradients());
  if (is_first) {
    context.gradients = std::move(free_gradients_.back());
    free_gradients_.pop_back();
  }
  OwnedMatrix to_input = parts_.backward(call.tensors, context.gradients, !is_first, needs_input);
  ++context.backward_calls;
  parts_.give_back(call.tensors);
  context.calls.erase(id.number);
  return to_input;
}

template <nn::Block Model, class D>
double SubNetwork<Model, D>::prepare_step(const StepPreparation& step, double before) {
  const auto found = contexts_.find(step.context);
  const int calls = found == contexts_.end() ? 0 : found->second.backward_calls;
  if (calls != step.backward_calls)
    throw Error{text("no parameter was changed, because ", step.backward_calls - calls, " of ", step.backward_calls,
                     " backward passes of this network have failed; Loss::get() says why")};
  if (!step.measures && !step.finite) return before;
  Gradients& gradients = found->second.gradients;
  double square = 0;
  for (std::size_t p = 0; p < parts_.size(); ++p) square += parts_.square(p, gradients[p].span());
  if (step.finite && !is_finite(square)) throw_non_finite(gradients);
  return step.measures ? before + square : before;
}

template <nn::Block Model, class D>
void SubNetwork<Model, D>::throw_non_finite(Gradients& gradients) {
  std::string name = "a parameter";
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    parts_[p].stage().keep_gradients_in(0, gradients[p].span());
    parts_[p].stage().for_each_gradient(0, [&](const nn::Parameter& parameter, int, std::span<float> gradient, std::span<float>) {
      if (!is_finite(parts_.square(p, gradient))) name = parameter.full_name();
    });
  }
  throw NonFiniteGradient{text("the gradient of ", name,
                               " is not finite (NaN or infinity), and no parameter has been changed; look at the samples of this step, "
                               "lower the learning rate, or skip such steps (NonFinite::skip)")};
}

}  // namespace pdp::rpc
