#pragma once

/// Definitions of the larger members of SubNetwork, which pdp/rpc/sub_network.hpp includes.

#include <algorithm>
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
#include <pdp/core/pass.hpp>
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
LossSums SubNetwork<Model, D>::loss(const CallId& id, const OwnedMatrix& /*y*/, const L& loss, int number,
                                    const std::vector<typename L::Target>& targets, double divisor) {
  static_assert(loss::Loss<L, D>, "pdp: the loss is not a pdp::loss::Loss on this device (see loss/loss.hpp)");
  using Target = typename L::Target;
  return recording(id, [&] {
    Call& call = find(id);
    const Matrix<const float> output = parts_.back().output(*call.tensors.back());
    const Index expected = loss.target_elements(output.cols) * output.rows;
    if (as_index(targets.size()) != expected)
      throw ShapeError{text("the loss got ", targets.size(), " target values for ", output.rows, " rows; expected ", expected)};
    if constexpr (requires { loss.check_outputs(output.cols); }) loss.check_outputs(output.cols);
    if constexpr (requires { loss.check(std::span<const Target>{targets}, output.cols); }) loss.check(targets, output.cols);
    LossSums sums;
    keep_gradient(call, number, [&](Matrix<float> gradient) {
      const D& device = parts_.back().device();
      auto uploaded = allocate<Target>(device, D::uses_host_memory ? 0 : expected);
      std::span<const Target> there = targets;
      if constexpr (!D::uses_host_memory) {
        upload(device, there, uploaded.data());
        there = uploaded.span();
      }
      auto numbers = allocate<StepNumbers>(device, 1);
      store(device, StepNumbers{.scale = divisor > 0 ? 1 / divisor : 0}, numbers.data());
      loss::compute(loss, device, Matrix<const float>{output}, there, &numbers.data()->scale, gradient, &numbers.data()->sums,
                    Pass{.is_training = true, .numbers = numbers.data()});
      sums = on_host(device, std::span<const StepNumbers>{numbers.span()}).front().sums;
    });
    return sums;
  });
}

template <nn::Block Model, class D>
void SubNetwork<Model, D>::add_gradient(const CallId& id, const OwnedMatrix& gradient) {
  recording(id, [&] { keep_gradient(find(id), gradient); });
}

template <nn::Block Model, class D>
void SubNetwork<Model, D>::keep_gradient(Call& call, const OwnedMatrix& gradient) {
  const Matrix<float> output = parts_.back().output_gradient(*call.tensors.back());
  gradient.check("the gradient of the network's output", output.cols);
  if (gradient.rows != output.rows)
    throw ShapeError{text("the gradient of the network's output has ", gradient.rows, " rows; the output has ", output.rows)};
  keep_gradient(call, -1, [&](Matrix<float> to) { upload(parts_.back().device(), gradient.matrix().values(), to.data); });
}

template <nn::Block Model, class D>
void SubNetwork<Model, D>::add_up(Call& call, const BackwardRequest& request) {
  const auto is_named = [&](const OutputGradient& each) {
    return each.loss < 0 || std::ranges::find(request.losses, each.loss) != request.losses.end();
  };
  const auto named = as_size(std::ranges::count_if(call.gradients, is_named));
  if (const std::size_t expected = request.losses.size() + as_size(request.gradients); named != expected || named == 0)
    throw Error{text("forward call ", request.call.number, " of this network has ", named, " of ", expected, " gradients of its output")};
  parts_.on_thread(parts_.size() - 1, [&] {
    const D& device = parts_.back().device();
    const Matrix<float> sum = parts_.back().output_gradient(*call.tensors.back());
    bool has_sum = is_named(call.gradients.front());
    for (std::size_t i = 1; i < call.gradients.size(); ++i) {
      if (!is_named(call.gradients[i])) continue;
      const Matrix<const float> more{call.gradients[i].memory.data(), sum.rows, sum.cols};
      if (std::exchange(has_sum, true))
        add(device, Matrix<const float>{sum}, more, sum);
      else
        copy(device, more, sum);
    }
  });
}

template <nn::Block Model, class D>
OwnedMatrix SubNetwork<Model, D>::backward(const BackwardRequest& request, const OwnedMatrix& gradient) {
  return recording(request.call, [&] {
    Call& call = find(request.call);
    if (gradient.rows > 0) keep_gradient(call, gradient);
    add_up(call, request);
    Recorded& context = contexts_.at(request.call.context);
    const bool is_first = context.backward_calls == 0;
    if (is_first && free_gradients_.empty()) free_gradients_.push_back(parts_.gradients());
    if (is_first) {
      context.gradients = std::move(free_gradients_.back());
      free_gradients_.pop_back();
    }
    OwnedMatrix to_input = parts_.backward(call.tensors, context.gradients, !is_first, request.needs_input);
    ++context.backward_calls;
    parts_.give_back(call.tensors);
    context.calls.erase(request.call.number);
    return to_input;
  });
}

template <nn::Block Model, class D>
double SubNetwork<Model, D>::prepare_step(const StepPreparation& step, double before) {
  const auto found = contexts_.find(step.context);
  const int calls = found == contexts_.end() ? 0 : found->second.backward_calls;
  if (calls != step.backward_calls) {
    const std::string why = found == contexts_.end() ? std::string{} : found->second.failure;
    throw Error{text("no parameter was changed, because ", step.backward_calls - calls, " of ", step.backward_calls,
                     " backward passes of this network have failed: ", why.empty() ? "see the error of Loss::get()" : why)};
  }
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
