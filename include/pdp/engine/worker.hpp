#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/random.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/engine/batch_input.hpp>
#include <pdp/engine/boundary_memory.hpp>
#include <pdp/engine/gradient_norm.hpp>
#include <pdp/engine/instances.hpp>
#include <pdp/engine/parameter_settings.hpp>
#include <pdp/engine/predicted_output.hpp>
#include <pdp/engine/row_count.hpp>
#include <pdp/engine/row_loss.hpp>
#include <pdp/engine/unit_updates.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// The computation of a rank's plan, without communication: layers, losses and updates. The constructor allocates all memory that the plan
/// needs. `Types`: those of the model's layers (see nn::Stage).
template <class Types, class Loss, optim::Optimizer Optimizer, SupportedPrecision P, class D>
class Worker {
 public:
  using T = typename P::compute;
  using Gradient = Accumulated<T>;    // of parameters; also the type of masters and of the optimizer state
  using Output = typename P::master;  // of a prediction
  using Sample = nn::SampleOfLayers<Types, Output>;
  using Target = loss::TargetOf<Loss, D, T>;
  using StepBatch = Batch<Sample, Target>;
  using Slot = nn::Slot<T>;
  using Stage = nn::Stage<Types, D, T>;
  static constexpr bool pauses = nn::any_pauses<Types>;
  static constexpr bool sums_over_batch = nn::any_sums_over_batch<Types>;
  static constexpr bool numbers_rows = sums_over_batch || nn::any_uses_row_numbers<Types> || RowLoss<Loss, T, D>::numbers_rows;
  static_assert(Device<D, T>,
                "pdp: the device lacks one of the operations of core/device.hpp for this element type (a CPU has those of float, double "
                "and bfloat16)");
  static_assert(loss::Loss<Loss, D, T>, "pdp: the loss is not a pdp::loss::Loss on this device (see loss/loss.hpp)");

  /// `lent`: memory that another object owns; empty if there is none.
  template <nn::Block Model>
  Worker(const plan::Plan& plan, const Model& model, const Shape& input, Loss loss, Optimizer optimizer, Limits limits, D device,
         const nn::Lent<T>& lent)
      : stage_{model, input, plan::runs(plan, nn::outline(model, input)), limits.seed, device, lent},
        updates_{optimizer, stage_, plan.units.size()},
        limits_{limits},
        micro_rows_{plan::micro_batch_rows(plan, limits.rows)},
        numbers_{allocate<StepNumbers>(device, 1)},
        loss_{device, loss, plan.tensor, stage_.outline(), micro_rows_},
        boundaries_{device, plan, stage_.outline(), micro_rows_, numbers_.data()},
        input_{device, limits.rows, stage_.outline().width(0), loss_.target_elements()},
        output_{plan.tensor.count, stage_.outline().output} {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] Stage& stage() { return stage_; }
  [[nodiscard]] const D& device() const { return stage_.device(); }
  [[nodiscard]] Index micro_rows() const { return micro_rows_; }
  [[nodiscard]] bool may_ignore_rows() const { return loss_.may_ignore_rows(); }
  [[nodiscard]] std::int64_t& steps() { return steps_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

  /// Throws ShapeError if a batch does not fit, TokenError if a token is none of the model's, and LabelError if a target is none of the
  /// model's outputs.
  void check(const StepBatch& batch, bool training) const {
    check_samples(batch.x, training ? limits_.rows : micro_rows_, D::uses_host_memory || !batch.on_device);
    check_targets(batch.x.rows, as_index(batch.targets.size()), loss_.target_elements());
    if (!batch.on_device) loss_.check(batch.targets);
  }

  /// Returns whether begin() can return without a wait for earlier work of the device.
  [[nodiscard]] bool begins_at_once(const StepBatch& batch) const {
    return batch.on_device || takes_at_once(device(), {batch.x.values().size_bytes(), batch.targets.size_bytes()});
  }

  /// From now on, also copies batches that already lie on the device. So the device reads all batches at one address.
  void copy_batches() { input_.copy_always(); }

  /// Begins a step or an evaluation on this rank's rows. Call check() first.
  void begin(const StepBatch& batch, bool training, const StepBegin& step = {}) {
    training_ = training;
    if (training) {
      norm.begin(device());
      ++steps_;
    }
    store(device(), first_numbers(steps_, step, loss_.rows_of_sample()), numbers_.data());
    if (training && step.global_rows.all() > 0) norm.scale_loss(device(), numbers_.data());
    bind(batch, step.first_row);
  }
  /// Returns the rows of the current step or evaluation, in memory that the device reads. Valid as long as the caller's batch.
  [[nodiscard]] const Batch<nn::SampleOfLayers<Types, T>, Target>& batch() const { return batch_; }
  /// Returns the addresses in device memory of the current inputs and targets.
  [[nodiscard]] std::pair<const void*, const void*> where() const { return {batch_.x.data, batch_.targets.data()}; }
  /// Sets the numbers of rows on all ranks, by which the loss and the changes of buffers are divided.
  void set_global_rows(const RowTotals& rows) {
    store(device(), loss_factor(rows), &numbers_.data()->scale);
    store(device(), sample_factor(rows, loss_.rows_of_sample()), &numbers_.data()->row_scale);
    norm.scale_loss(device(), numbers_.data());
  }
  void begin_prediction(Matrix<const Sample> x) {
    check_samples(x, micro_rows_, true);
    training_ = false;
    bind({x, {}, 0}, 0);
  }

  /// Executes share_loss, loss, backward_input, backward_weight, or a part of a layer that pauses.
  void run(const plan::Instruction& i) {
    switch (i.op) {
      case plan::Op::share_loss:
        return share_loss(slot(i), i.first);
      case plan::Op::loss:
        return take_loss(slot(i), i.first);
      case plan::Op::backward_input:
        return stage_.backward_input(slot(i), i.first, i.last);
      case plan::Op::backward_weight:
        return stage_.backward_weight(slot(i), i.first, i.last, i.accumulate);
      case plan::Op::forward_to_pause:
        return stage_.forward_to_pause(slot(i), i.first, i.pause);
      case plan::Op::backward_to_pause:
        return stage_.backward_to_pause(slot(i), i.first, i.pause);
      default:
        break;
    }
  }

  /// Computes the first layers of a forward instruction. Returns the rest of the instruction.
  [[nodiscard]] plan::Instruction run_next(const plan::Instruction& i) {
    return plan::compute(i.op, i.micro_batch, stage_.forward_next(slot(i), i.first, i.last), i.last);
  }

  /// Updates this rank's slice of a unit with its own gradients, or with the sum of the gradients at `gradients` if there are any. Also
  /// writes the new values to `copies`. Changes nothing if the step is skipped. If the plan takes the norm of the gradient, `gradients`
  /// must be empty: the gradients are summed before their norm is taken.
  void apply(int unit, std::span<const Gradient* const> gradients = {}, std::span<T* const> copies = {}) {
    const Gradient* const own = stage_.own_gradients(unit).data();
    if (gradients.empty()) gradients = {&own, 1};
    T* const values = stage_.own_values(unit).data();
    if constexpr (Stage::has_masters) copies = {&values, 1};
    updates_.apply(device(), unit, numbers_.data(), stage_.own_masters(unit), gradients, copies);
  }

  /// Writes the averages of optim::Averaged over this rank's slice of a unit.
  void put_averages(int unit) {
    const std::span<Gradient> masters = stage_.own_masters(unit);
    updates_.put_averages(device(), unit, masters);
    if constexpr (Stage::has_masters) {
      const Index elements = as_index(masters.size());
      convert(device(), Matrix<const Gradient>{masters.data(), 1, elements}, Matrix<T>{stage_.own_values(unit).data(), 1, elements});
    }
  }

  [[nodiscard]] const Optimizer& optimizer() const { return updates_.optimizer(); }
  [[nodiscard]] UnitUpdates<Optimizer, D, T>& updates() { return updates_; }
  /// Returns a function that says whether a parameter has no gradient that counts (see frozen_by).
  [[nodiscard]] auto frozen() const { return frozen_by(groups_of(optimizer())); }

  /// Executes `count` instructions, the first of which is `i`. Their rows may be computed together (see plan::joined). Calls between()
  /// after each product.
  template <class Between>
  void run_joined(const plan::Instruction& i, int count, Between&& between) {
    const std::span<Slot> all = boundaries_.slots_when(true).subspan(as_size(i.micro_batch), as_size(count));
    for (int layer = i.last - 1; layer >= i.first; --layer) {
      if (boundaries_.lie_together(all, layer)) {
        Index rows = 0;
        for (const Slot& each : all) rows += each.rows;
        const Index own = std::exchange(all.front().rows, rows);
        stage_.backward_weight(all.front(), layer, layer + 1, i.accumulate);
        all.front().rows = own;
        between();
      } else {
        for (std::size_t m = 0; m < all.size(); ++m) {
          stage_.backward_weight(all[m], layer, layer + 1, i.accumulate || m > 0);
          between();
        }
      }
    }
  }
  /// Returns the tensor of a message or a sum.
  [[nodiscard]] std::span<T> boundary(const plan::Instruction& i) {
    return (i.tensor == plan::Tensor::activation ? stage_.activation(slot(i), i.first) : stage_.gradient(slot(i), i.first)).values();
  }
  template <class Visit>
  void visit_sums(const plan::Instruction& i, Visit&& visit) {
    stage_.visit_sums(slot(i), i.first, i.pause, i.tensor == plan::Tensor::gradient, visit);
  }
  /// Throws ConfigError if a layer adds up over a batch in which it has a single value. `rows`: those of the loss, of all ranks.
  void check_batch_of(const RowTotals& rows) const { check_sums(stage_.outline(), rows.all() / loss_.rows_of_sample()); }
  /// Returns the model's output for the rows of a prediction, in host memory.
  [[nodiscard]] Matrix<const Output> output() { return output_.whole(device(), device_output()); }
  /// Returns the same output if each rank of a group has some of its columns. gather(own, all) collects the columns of all ranks.
  template <class Gather>
  [[nodiscard]] Matrix<const Output> join_output(const Gather& gather) {
    return output_.join(device(), device_output(), gather);
  }
  /// The partial results for a micro-batch's loss if the output's columns are divided. own_parts(): those of this rank. all_parts(): memory
  /// for those of all ranks of the group.
  [[nodiscard]] std::span<Gradient> own_parts() { return loss_.own_parts(); }
  [[nodiscard]] std::span<Gradient> all_parts() { return loss_.all_parts(); }
  /// The norm of the gradient, if the plan takes it. watch() runs before the reduction of each unit. add_squares() adds this rank's part of
  /// the square. apply_gradient_rule() runs when the square is the sum over all ranks.
  void watch(int unit) { norm.watch(device(), unit); }
  void add_squares() { norm.add_squares(device(), &numbers_.data()->square); }
  void apply_gradient_rule() { norm.apply_gradient_rule(device(), numbers_.data()); }
  /// Device values that ranks add up: sums() returns the loss and correct rows of a step, and the ranks' reports; square() returns the
  /// square of its gradient's norm.
  [[nodiscard]] std::span<double> sums() { return {&numbers_.data()->sums.loss, 5}; }
  [[nodiscard]] std::span<double> square() { return {&numbers_.data()->square, 1}; }
  /// Returns all numbers of a step, after the device has finished it.
  [[nodiscard]] StepNumbers numbers() const { return on_host(device(), numbers_.span()).front(); }
  /// Starts to read the same numbers, as they are after the device's work so far.
  [[nodiscard]] DeviceRead<D, StepNumbers> read_numbers() const { return read_later(device(), numbers_.data()); }
  GradientNorm<D, T> norm;

  /// Returns the rows of a batch. `adds`: whether this rank adds them to those of all ranks.
  [[nodiscard]] OwnRows own_rows(const StepBatch& batch, bool adds) const { return loss_.own_rows(device(), batch, adds); }

 private:
  [[nodiscard]] Matrix<const T> device_output() const { return stage_.activation(boundaries_.evaluation(), stage_.outline().size()); }

  void check_samples(Matrix<const Sample> x, Index limit, bool on_host) const {
    check_batch(x.rows, x.cols, limit, stage_.outline().width(0));
    if constexpr (nn::detail::first_takes_tokens<Types>)
      if (on_host) stage_.check_tokens(x);
  }

  void bind(const StepBatch& batch, Index first_row) {
    batch_ = input_.bring(device(), batch, training_);
    boundaries_.cut(batch_.x, training_, first_row);
  }

  [[nodiscard]] Slot& slot(const plan::Instruction& i) { return boundaries_.slots_when(training_)[as_size(i.micro_batch)]; }

  /// Returns the targets of a micro-batch's rows.
  [[nodiscard]] std::span<const Target> targets(const Slot& slot) const {
    const Index width = loss_.target_elements();
    return batch_.targets.subspan(as_size(slot.first_row * width), as_size(slot.rows * width));
  }
  /// Returns whether there is a loss to compute. There is none for a prediction, nor for an empty share, whose gradients are zero.
  [[nodiscard]] bool has_loss(const Slot& slot) const { return !batch_.targets.empty() && slot.rows > 0; }

  void share_loss(Slot& slot, int boundary) {
    loss_.share_nothing();
    if (has_loss(slot)) loss_.share(device(), stage_.activation(slot, boundary), targets(slot));
  }
  void take_loss(Slot& slot, int boundary) {
    if (!has_loss(slot)) return;
    Pass pass = slot.pass;
    pass.key = random::make_key(limits_.seed, "pass", "loss");
    loss_.take(device(), stage_.activation(slot, boundary), targets(slot), numbers_.data(),
               training_ ? stage_.gradient(slot, boundary) : Matrix<T>{}, pass);
  }

  Stage stage_;
  UnitUpdates<Optimizer, D, T> updates_;
  Limits limits_;
  Index micro_rows_;  // of a full micro-batch
  DeviceMemory<D, StepNumbers> numbers_;
  RowLoss<Loss, T, D> loss_;
  BoundaryMemory<D, T> boundaries_;
  BatchInput<Sample, nn::SampleOfLayers<Types, T>, Target, D> input_;
  PredictedOutput<Output, T, D> output_;
  std::int64_t steps_ = 0;
  bool training_ = false;
  Batch<nn::SampleOfLayers<Types, T>, Target> batch_;  // in memory that the device reads
};

}  // namespace pdp::engine
