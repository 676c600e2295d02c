#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/ties.hpp>

namespace pdp::engine {

/// The computation of the norm of a step's gradient on one rank's device. It involves no other rank, and the host only when it reads
/// results.
///
/// The norm covers the parameters that are updated: not frozen ones, nor a unit's memory between and behind parameters, which holds
/// arbitrary values.
template <class D, class T>
class GradientNorm {
  using Gradient = Accumulated<T>;

 public:
  GradientNorm();
  GradientNorm(GradientNorm&&) noexcept;
  GradientNorm& operator=(GradientNorm&&) noexcept;
  ~GradientNorm();
  /// `counts`: for each unit, whether this rank adds its part (see Groups::counted_units). `frozen`: whether a parameter is left out.
  /// Throws ConfigError if the policy is not valid, and PlanError if the plan lacks a norm that the policy needs.
  GradientNorm(nn::StageParameters<D, T>& stage, const plan::Plan& plan, const plan::GradientPolicy& policy,
               const std::vector<bool>& counts, const std::function<bool(const nn::Parameter&)>& frozen);

  /// Begins a step.
  void begin(const D& device);
  /// Records the squares of a unit's gradients for culprit(), before a reduction overwrites them. Does nothing unless the policy is
  /// NonFinite::stop.
  void watch(const D& device, int unit);
  /// Does the same for a unit that is not reduced, before the gradient of a layer that shares its parameter is added.
  void watch_tied(const D& device, int unit);
  /// Adds this rank's part of the squared norm to *sum. All gradients must be complete.
  void add_squares(const D& device, double* sum);
  /// Scales the loss if the policy scales losses. The step's number of rows must be known.
  void scale_loss(const D& device, StepNumbers* numbers);
  /// Applies the policy to the gradient. The squared norm must be the sum over all ranks.
  void apply_gradient_rule(const D& device, StepNumbers* numbers);

  /// The state between steps. Its loss_scale is 0 if losses are not scaled. set_history() keeps the initial scale if it is given 0.
  [[nodiscard]] StepHistory history(const D& device) const {
    StepHistory found;
    if (history_.size() > 0) found = on_host(device, std::span<const StepHistory>{history_.span()}).front();
    if (!policy_.loss_scaling) found.loss_scale = 0;
    return found;
  }
  void set_history(const D& device, StepHistory history) {
    if (!policy_.loss_scaling) history.loss_scale = 1;
    if (history.loss_scale == 0) history.loss_scale = policy_.loss_scaling->initial;
    if (history_.size() > 0) store(device, history, history_.data());
  }

  /// Returns whether a gradient that is not finite ends the training.
  [[nodiscard]] bool stops() const { return policy_.non_finite == plan::NonFinite::stop; }
  /// The tensor nearest to the loss among those whose gradient on this rank was not finite. The layer is -1 if all were finite.
  struct Culprit {
    int layer = -1;
    std::string name{};
  };
  [[nodiscard]] Culprit culprit(const D& device) const;

 private:
  struct Tensor {
    nn::Parameter parameter;
    int layer;
    std::span<Gradient> values;
    Index number;  // index among the tensors of all units
  };
  struct Unit {
    bool is_reduced = false, is_tied = false, counts = false;
    std::vector<Tensor> whole;
    std::vector<std::span<Gradient>> own;  // this rank's part of each tensor
  };
  static void add_squares(const D& device, std::span<Gradient> values, double* sum);

  plan::GradientPolicy policy_;
  std::vector<Unit> units_;
  DeviceMemory<D, double> watched_;       // [tensor]: its square; only for NonFinite::stop
  DeviceMemory<D, StepHistory> history_;  // only if the policy needs the norm
};

template <class D, class T>
GradientNorm<D, T>::GradientNorm() = default;
template <class D, class T>
GradientNorm<D, T>::GradientNorm(GradientNorm&&) noexcept = default;
template <class D, class T>
GradientNorm<D, T>& GradientNorm<D, T>::operator=(GradientNorm&&) noexcept = default;
template <class D, class T>
GradientNorm<D, T>::~GradientNorm() = default;

template <class D, class T>
GradientNorm<D, T>::GradientNorm(nn::StageParameters<D, T>& stage, const plan::Plan& plan, const plan::GradientPolicy& policy,
                                 const std::vector<bool>& counts, const std::function<bool(const nn::Parameter&)>& frozen)
    : policy_{policy} {
  policy.check();
  if (!policy.needs_norm()) return;
  if (std::ranges::none_of(plan.step, [](const plan::Instruction& i) { return i.op == plan::Op::norm_wait; }))
    throw PlanError{
        "clipping or checking the gradient needs its norm, which the plan does not compute; make the plan with plan_for(policy, plan)"};
  units_.resize(plan.units.size());
  Index tensors = 0;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    Unit& unit = units_[u];
    unit.is_reduced =
        std::ranges::any_of(plan.step, [u](const plan::Instruction& i) { return i.op == plan::Op::reduce_start && i.unit == as_int(u); });
    unit.is_tied = plan::is_tied(stage.outline(), plan.units[u]);
    unit.counts = counts[u];
    stage.for_each_gradient(as_int(u), [&](const nn::Parameter& parameter, int layer, std::span<Gradient> whole, std::span<Gradient> own) {
      if (frozen(parameter)) return;
      unit.whole.push_back({parameter, layer, whole, tensors++});
      const bool others_have_it = parameter.is_copy || (plan.tensor.index > 0 && !parameter.is_divided());
      if (!own.empty() && !others_have_it) unit.own.push_back(own);
    });
  }
  if (policy.non_finite == plan::NonFinite::stop) watched_ = allocate<double>(stage.device(), tensors);
  history_ = allocate<StepHistory>(stage.device(), 1);
  if (policy.loss_scaling) store(stage.device(), StepHistory{.loss_scale = policy.loss_scaling->initial}, history_.data());
}

template <class D, class T>
void GradientNorm<D, T>::begin(const D& device) {
  if (watched_.size() > 0) zero(device, watched_.span());
}

template <class D, class T>
void GradientNorm<D, T>::watch(const D& device, int unit) {
  if (policy_.non_finite != plan::NonFinite::stop) return;
  for (const Tensor& tensor : units_[as_size(unit)].whole) add_squares(device, tensor.values, watched_.data() + tensor.number);
}

template <class D, class T>
void GradientNorm<D, T>::watch_tied(const D& device, int unit) {
  if (policy_.non_finite == plan::NonFinite::stop && !units_[as_size(unit)].is_reduced) watch(device, unit);
}

template <class D, class T>
void GradientNorm<D, T>::add_squares(const D& device, double* sum) {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (!units_[u].is_reduced && !units_[u].is_tied) watch(device, as_int(u));
    if (!units_[u].counts) continue;
    for (const std::span<Gradient> own : units_[u].own) add_squares(device, own, sum);
  }
}

template <class D, class T>
void GradientNorm<D, T>::add_squares(const D& device, std::span<Gradient> values, double* sum) {
  sum_of_squares(device, Matrix<const Gradient>{values.data(), 1, as_index(values.size())}, sum);
}

template <class D, class T>
void GradientNorm<D, T>::scale_loss(const D& device, StepNumbers* numbers) {
  using pdp::scale_loss;
  if (policy_.loss_scaling) scale_loss(device, numbers, history_.data());
}

template <class D, class T>
void GradientNorm<D, T>::apply_gradient_rule(const D& device, StepNumbers* numbers) {
  using pdp::apply_gradient_rule;
  apply_gradient_rule(device, numbers, history_.data(), policy_.rule());
}

template <class D, class T>
typename GradientNorm<D, T>::Culprit GradientNorm<D, T>::culprit(const D& device) const {
  const auto squares = on_host(device, watched_.span());
  const Tensor* found = nullptr;
  for (const Unit& unit : units_)
    for (const Tensor& tensor : unit.whole)
      if ((found == nullptr || tensor.layer > found->layer) && !is_finite(squares[as_size(tensor.number)])) found = &tensor;
  return found == nullptr ? Culprit{} : Culprit{found->layer, found->parameter.full_name()};
}

/// Throws NonFiniteGradient, with the same text on every rank; every rank of the world makes this call. The error names a tensor whose
/// gradient was not finite, and its rank. Of several such tensors it names the one nearest to the loss, on the lowest rank. Names are cut
/// to 64 letters.
template <comm::Communicator C, class D, class T>
[[noreturn]] void throw_non_finite_gradient(C& world, const D& device, const GradientNorm<D, T>& norm, std::int64_t step) {
  HostCalls calls{world, device};
  const auto culprit = norm.culprit(device);
  std::int64_t found = culprit.layer < 0 ? -1 : std::int64_t{culprit.layer} * world.size() + (world.size() - 1 - world.rank());
  calls.all_reduce(std::span{&found, 1}, comm::Max{});
  constexpr const char* what_to_do =
      "and no parameter has been changed; look at the samples of that step, lower the learning rate, or skip such steps "
      "(NonFinite::skip)";
  if (found < 0)
    throw NonFiniteGradient{text("step ", step, ": the gradient is finite on each rank, but its sum over all ranks is not, ", what_to_do)};
  const int rank = world.size() - 1 - as_int(found % world.size());
  std::array<std::byte, 64> letters{};
  std::string name = culprit.name;
  std::transform(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(std::min(name.size(), letters.size())), letters.begin(),
                 [](char letter) { return static_cast<std::byte>(letter); });
  calls.broadcast(std::span<std::byte>{letters}, rank);
  name.clear();
  for (const std::byte letter : letters)
    if (letter != std::byte{}) name += static_cast<char>(letter);
  throw NonFiniteGradient{
      text("step ", step, ": the gradient of ", name, " on rank ", rank, " is not finite (NaN or infinity), ", what_to_do)};
}

}  // namespace pdp::engine
