#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/in_flight.hpp>
#include <pdp/engine/non_finite_tensor.hpp>
#include <pdp/engine/program.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Returns what each rank has found, in their order. Every rank of the world makes this call.
template <comm::Communicator C, class D>
[[nodiscard]] std::vector<NonFiniteTensor> gather_found(C& world, const D& device, const NonFiniteTensor& own) {
  std::vector<NonFiniteTensor> found(as_size(world.size()));
  HostCalls{world, device}.all_gather(std::as_bytes(std::span<const NonFiniteTensor>{&own, 1}),
                                      std::as_writable_bytes(std::span<NonFiniteTensor>{found}));
  return found;
}

/// Throws NonFiniteLoss, with the same text on every rank; every rank of the world makes this call. `own`: found in this rank's batch.
template <comm::Communicator C, class D, class T>
[[noreturn]] void throw_non_finite_loss(C& world, nn::StageParameters<D, T>& stage, const plan::Plan& plan,
                                        const std::function<bool(const nn::Parameter&)>& frozen, NonFiniteTensor own,
                                        const StepNumbers& numbers, std::int64_t step) {
  if (!own) own = find_in_parameters(stage);
  if (!own) own = find_in_gradients(stage, plan, frozen);
  const auto found = gather_found(world, stage.device(), own);
  meet_before_throwing(world);
  throw NonFiniteLoss{words_of_non_finite_loss(numbers, step, found, stage.of_model())};
}

/// Throws NonFiniteLoss on every rank if a parameter is not finite on one of them. Every rank of the world makes this call, before it saves
/// a checkpoint after some steps.
template <comm::Communicator C, class D, class T>
void check_finite_parameters(C& world, nn::StageParameters<D, T>& stage, std::int64_t steps) {
  const auto found = gather_found(world, stage.device(), find_in_parameters(stage));
  if (std::ranges::none_of(found, [](const NonFiniteTensor& tensor) { return static_cast<bool>(tensor); })) return;
  meet_before_throwing(world);
  throw NonFiniteLoss{words_of_non_finite_parameters(steps, found, stage.of_model())};
}

/// No batch: that of an earlier step, which the caller does not have any more.
struct NoBatch {};

/// Ends a training whose loss is not finite (NonFinite::stop_on_loss). All ranks have the loss of a step with its totals, so a step costs
/// one comparison. Only if it fails, the ranks look for the cause in their memory, and exchange the results. Borrows all arguments of the
/// constructor.
template <comm::Communicator C, class W>
class LossCheck {
  using Device = typename W::Stage::Device;

 public:
  /// Throws PlanError if ranks would not all have the loss.
  LossCheck(const plan::GradientPolicy& policy, C& world, const plan::Plan& plan, W& worker, InFlight<C, Device>& in_flight)
      : world_{world},
        plan_{plan},
        worker_{worker},
        in_flight_{in_flight},
        is_on_{policy.non_finite == plan::NonFinite::stop_on_loss},
        reads_inputs_{reads_samples(plan.step)},
        reads_targets_{computes_loss(plan.step) && !worker.may_ignore_rows()} {
    if (is_on_ && world.size() > 1) check_totals(plan.step);
  }

  /// Call it when a step has started. A CPU has then finished the step. It has read the batch in memory that may change later.
  void started() {
    if constexpr (Device::uses_host_memory)
      if (is_on_ && !is_finite(worker_.sums().front())) in_batch_ = look_in(worker_.device(), worker_.batch());
  }

  /// Throws NonFiniteLoss if the loss of a step ends the training (see throw_non_finite_loss). `batch`: null if no later step has started,
  /// else a function that returns the batch of that step, in host memory, or NoBatch.
  template <class Batch = std::nullptr_t>
  void check(const StepNumbers& numbers, std::int64_t step, const Batch& batch = nullptr) {
    if (!is_on_ || is_finite(numbers.sums.loss)) return;
    in_flight_.synchronise();
    throw_non_finite_loss(world_, worker_.stage(), plan_, worker_.frozen(), find_in(batch), numbers, step);
  }

 private:
  template <class D, class B>
  [[nodiscard]] NonFiniteTensor look_in(const D& device, const B& batch) const {
    return find_in_batch(device, batch, reads_inputs_, reads_targets_);
  }
  template <class Batch>
  [[nodiscard]] NonFiniteTensor find_in(const Batch& batch) const {
    if constexpr (std::same_as<Batch, NoBatch>) {
      return {};
    } else if constexpr (std::same_as<Batch, std::nullptr_t>) {
      return Device::uses_host_memory ? in_batch_ : look_in(worker_.device(), worker_.batch());
    } else {
      try {
        return look_in(cpu::Cpu{}, batch());
      } catch (const std::exception&) {  // the other ranks wait for this one's answer
        return {};
      }
    }
  }

  C& world_;
  const plan::Plan& plan_;
  W& worker_;
  InFlight<C, Device>& in_flight_;
  bool is_on_, reads_inputs_, reads_targets_;
  NonFiniteTensor in_batch_{};  // of the last step whose loss is not finite
};

}  // namespace pdp::engine
