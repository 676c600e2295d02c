#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/rpc/autograd.hpp>
#include <pdp/rpc/autograd/network.hpp>
#include <pdp/rpc/future.hpp>
#include <pdp/rpc/network/requests.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/remote.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

struct OptimizerOptions {
  double clip_norm = 0;                                  // maximum norm of the gradient over all networks of the optimizer; 0: no limit
  plan::NonFinite non_finite = plan::NonFinite::ignore;  // not stop_on_loss: the optimizer does not know the loss
  autograd::MissingGradient missing_gradient = autograd::MissingGradient::stop;
  /// How many steps may be in flight. A further step() waits for the oldest one, and throws its error.
  int steps_in_flight = 2;
};

/// An optimizer of the parameters of remote networks. Each network updates its own parameters and keeps their optimizer state on its own
/// rank. Move-only. Use it on the thread of its Node, and destroy it before the Node ends.
template <optim::Optimizer Rule, optim::Schedule Schedule = optim::Constant>
class DistributedOptimizer {
  static_assert(!optim::has_groups<Rule>, "pdp: remote networks take no parameter groups; give them the optimizer without optim::Grouped");

 public:
  template <class... N>
  DistributedOptimizer(Node& node, const Rule& rule, const Remote<N>&... networks)
      : DistributedOptimizer{node, rule, Schedule{}, OptimizerOptions{}, networks...} {}
  template <class... N>
  DistributedOptimizer(Node& node, const Rule& rule, const OptimizerOptions& options, const Remote<N>&... networks)
      : DistributedOptimizer{node, rule, Schedule{}, options, networks...} {}
  /// Throws ConfigError if an option is out of range, there is no network, or a network occurs twice. The schedule counts the steps of this
  /// optimizer.
  template <class... N>
  DistributedOptimizer(Node& node, const Rule& rule, const Schedule& schedule, const OptimizerOptions& options,
                       const Remote<N>&... networks)
      : rule_{rule}, schedule_{schedule}, options_{options}, id_{node.new_id()} {
    plan::GradientPolicy{.clip_norm = options.clip_norm}.check();
    if (options.non_finite == plan::NonFinite::stop_on_loss)
      throw ConfigError{
          "OptimizerOptions::non_finite is NonFinite::stop_on_loss, but an optimizer of remote networks does not know the loss; use "
          "NonFinite::stop or skip"};
    if (options.steps_in_flight < 1) throw ConfigError{"OptimizerOptions::steps_in_flight must be at least 1"};
    (add(networks), ...);
    if (slots_.empty()) throw ConfigError{"a DistributedOptimizer needs at least one network"};
  }
  DistributedOptimizer(DistributedOptimizer&&) noexcept = default;
  DistributedOptimizer& operator=(DistributedOptimizer&&) = delete;
  ~DistributedOptimizer() {
    for (const auto& end : ends_) end(id_);
  }

  /// Updates the parameters with the gradients of a context. Returns at once, unless too many steps are in flight. Either all networks make
  /// the step or none: none if a backward pass has failed. That error is thrown by wait(), or by the step() that waits for this one, after
  /// it has started its own step. Throws Error if backward() has not been called, if the step has been made already, or if a network has no
  /// gradient.
  void step(autograd::Context& context) {
    std::vector<bool> applied;
    const bool finite = options_.non_finite == plan::NonFinite::stop, skips = options_.non_finite == plan::NonFinite::skip;
    Future<double> square = context.prepare_step(slots_, options_.missing_gradient, options_.clip_norm != 0 || skips, finite, applied);
    const StepRequest request{context.id(), id_, schedule_.factor(steps_), options_.clip_norm, skips};
    ++steps_;
    std::vector<Future<void>> step;
    for (std::size_t i = 0; i < applied.size(); ++i)
      if (applied[i]) step.push_back(updates_[i](request, rule_, square));
    square.ignore();  // the steps report its error
    in_flight_.push_back(std::move(step));
    while (in_flight_.size() > static_cast<std::size_t>(options_.steps_in_flight)) wait_for_first();
  }
  /// Waits for the steps in flight. Throws the error of the first one that has failed; call it again to wait for those behind it.
  void wait() {
    while (!in_flight_.empty()) wait_for_first();
  }
  /// Returns the number of steps so far.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  template <class N>
  void add(const Remote<N>& network) {
    static_assert(check_network<N>());
    for (const SlotId other : slots_)
      if (other == network.slot()) throw ConfigError{"a network was given twice to a DistributedOptimizer"};
    slots_.push_back(network.slot());
    updates_.push_back([network](const StepRequest& request, const Rule& rule, const Future<double>& square) {
      return network.template async<&N::template step<Rule>>(request, rule, square);
    });
    ends_.push_back([network](SlotId id) { network.template tell<&N::end_optimizer>(id); });
  }
  void wait_for_first() {
    std::vector<Future<void>> step = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (Future<void>& each : step) each.get();
  }

  Rule rule_;
  Schedule schedule_;
  OptimizerOptions options_;
  SlotId id_;
  std::vector<SlotId> slots_;
  std::vector<std::function<Future<void>(const StepRequest&, const Rule&, const Future<double>&)>> updates_;
  std::vector<std::function<void(SlotId)>> ends_;
  std::deque<std::vector<Future<void>>> in_flight_;
  std::int64_t steps_ = 0;
};

}  // namespace pdp::rpc
