#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pdp/parallel/gradient_policy.hpp>

namespace pdp::parallel {

/// What a rank knows of the norm of a step's gradient, and what it does about it. Without a word to any other rank.
///
/// The norm is of parameters alone: between them, and behind them, a unit's memory holds what it happens to hold.
template <class Stage>
class GradientNorm {
  using T = typename Stage::Element;

 public:
  GradientNorm() = default;
  /// `counts`: of each unit, whether this rank adds its part of it; of those that hold the same, one does.
  GradientNorm(Stage& stage, const Plan& plan, const GradientPolicy& policy, const std::vector<bool>& counts) : policy_{policy} {
    policy.check();
    if (!policy.needs_norm()) return;
    if (std::ranges::none_of(plan.step, [](const Instruction& i) { return i.op == Op::norm_wait; }))
      throw PlanError{
          "the gradient is to be clipped, or looked at, but the plan does not take its norm; make it with plan_for(policy, plan)"};
    units_.resize(plan.units.size());
    for (std::size_t u = 0; u < units_.size(); ++u) {
      Unit& unit = units_[u];
      unit.is_reduced = std::ranges::any_of(
          plan.step, [u](const Instruction& i) { return i.op == Op::reduce_start && i.unit == static_cast<std::int16_t>(u); });
      unit.counts = counts[u];
      stage.for_each_gradient(static_cast<int>(u), [&](const nn::Parameter& parameter, int layer, std::span<T> whole, std::span<T> own) {
        unit.whole.push_back({parameter, layer, whole});
        const bool others_have_it = plan.tensor.index > 0 && !parameter.is_divided();
        if (!own.empty() && !others_have_it) unit.own.push_back(own);
      });
    }
  }

  void begin() {
    culprit_ = nullptr;
    factor_ = 1;
    skips_ = false;
  }
  /// Looks at a unit's gradients before they are added to those of other ranks, and what they are is lost.
  template <class D>
  void watch(const D& device, int unit) {
    if (policy_.non_finite != NonFinite::stop) return;
    for (const Tensor& tensor : units_[static_cast<std::size_t>(unit)].whole)
      if ((culprit_ == nullptr || tensor.layer > culprit_->layer) && !std::isfinite(squares(device, tensor.values))) culprit_ = &tensor;
  }
  /// This rank's part of the square of the norm, when all gradients are in.
  template <class D>
  [[nodiscard]] double squares(const D& device) {
    double sum = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (!units_[u].is_reduced) watch(device, static_cast<int>(u));
      if (!units_[u].counts) continue;
      for (const std::span<T> own : units_[u].own) sum += squares(device, own);
    }
    return sum;
  }
  /// `square`: of all ranks. Whether the step has to stop.
  bool judge(double square) {
    norm_ = std::sqrt(square);
    if (!std::isfinite(norm_) && policy_.non_finite != NonFinite::ignore) {
      skips_ = true;
      return policy_.non_finite == NonFinite::stop;
    }
    // As torch.nn.utils.clip_grad_norm_ has it.
    if (const double factor = policy_.clip_norm / (norm_ + 1e-6); policy_.clip_norm != 0 && !(factor >= 1)) factor_ = factor;
    return false;
  }

  [[nodiscard]] double norm() const { return norm_; }
  /// What the gradient is multiplied with.
  [[nodiscard]] double factor() const { return factor_; }
  [[nodiscard]] bool skips() const { return skips_; }
  /// The tensor of this rank's own gradient that was not finite and is nearest to the loss, where backward begins: its layer, or -1 where
  /// all were; and its name.
  [[nodiscard]] int culprit_layer() const { return culprit_ == nullptr ? -1 : culprit_->layer; }
  [[nodiscard]] std::string culprit() const { return culprit_ == nullptr ? std::string{} : culprit_->parameter.full_name(); }

 private:
  struct Tensor {
    nn::Parameter parameter;
    int layer;
    std::span<T> values;
  };
  struct Unit {
    bool is_reduced = false, counts = false;
    std::vector<Tensor> whole;
    std::vector<std::span<T>> own;  // what this rank keeps of each
  };
  template <class D>
  static double squares(const D& device, std::span<T> values) {
    return sum_of_squares(device, Matrix<const T>{values.data(), 1, static_cast<Index>(values.size())});
  }

  GradientPolicy policy_;
  std::vector<Unit> units_;
  const Tensor* culprit_ = nullptr;
  double norm_ = 0, factor_ = 1;
  bool skips_ = false;
};

}  // namespace pdp::parallel
