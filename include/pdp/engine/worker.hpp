#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/engine/check_output.hpp>
#include <pdp/engine/gradient_norm.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/liveness.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// What a rank brings to a step: its share of a batch, of any number of rows up to what the engine was made for, none included.
template <class Input, class Target>
struct Batch {
  Matrix<const Input> x;
  std::span<const Target> targets;
  Index global_rows = 0;   // over all ranks, and every rank's share follows from it; 0: not known, the ranks count it together
  bool on_device = false;  // whether it lies in the device's memory, and not in the host's
};

/// What is known of a step when it begins.
struct StepBegin {
  float lr_factor = 1;
  Index global_rows = 0;  // 0: not known yet
};

/// What a step or an evaluation reports.
struct Totals {
  double loss = 0;     // sum over rows
  double correct = 0;  // rows
  double rows = 0;
  double gradient_norm = 0;  // before it was clipped; 0 where nobody has asked for it
  bool skipped = false;      // the gradient was not finite, and has not been applied
  double loss_scale = 1;     // that its gradients were larger by (see LossScaling)

  [[nodiscard]] double mean_loss() const { return rows > 0 ? loss / rows : 0; }
  [[nodiscard]] double accuracy() const { return rows > 0 ? correct / rows : 0; }
};

/// Sizes that an engine is made for.
struct Limits {
  Index rows = 0;  // the largest share of a step
  std::uint64_t seed = 0;
};

/// What a rank computes of a plan, without a word to any other rank: layers, losses and updates, on memory that is made here, once, from
/// the plan.
template <nn::Block Model, class Loss, optim::Optimizer Optimizer, SupportedPrecision P, class D>
class Worker {
 public:
  using T = typename P::compute;
  using Gradient = Accumulated<T>;   // of parameters; their masters and the optimizer's state likewise
  using Input = typename P::master;  // of a sample, and of what a prediction gives
  using Target = typename Loss::Target;
  using StepBatch = Batch<Input, Target>;
  using Slot = nn::Slot<T>;
  using Stage = nn::Stage<Model, D, T>;
  static_assert(
      Device<D, T>,
      "pdp: the device lacks one of the operations of core/device.hpp for this element type (a CPU has those of float and double)");
  static_assert(loss::Loss<Loss, D, T>, "pdp: the loss is not a pdp::loss::Loss on this device (see loss/loss.hpp)");

  /// `lent`, `lent_scratch`: memory that somebody else keeps, where there is any.
  Worker(const plan::Plan& plan, const Model& model, const Shape& input, Loss loss, Optimizer optimizer, Limits limits, D device,
         const nn::Lent<T>& lent, const std::vector<std::span<Gradient>>& lent_scratch)
      : part_{plan.tensor},
        loss_{loss},
        optimizer_{optimizer},
        stage_{model, input, plan::runs(plan), limits.seed, device, lent},
        limits_{limits},
        micro_rows_{plan::micro_batch_rows(plan, limits.rows)} {
    const Index fields = as_index(optim::needed_state_fields(optimizer_));
    for (std::size_t u = 0; u < plan.units.size(); ++u)
      optimizer_state_.push_back(allocate<Gradient>(device, fields * as_index(stage_.own_gradients(as_int(u)).size())));
    numbers_ = allocate<StepNumbers>(device, 1);
    uncounted_ = allocate<LossSums>(device, 1);
    make_memory(plan);
    make_scratch(plan, lent_scratch);
    make_parts();
    make_input();
  }

  [[nodiscard]] Stage& stage() { return stage_; }
  [[nodiscard]] const D& device() const { return stage_.device(); }
  [[nodiscard]] Index micro_rows() const { return micro_rows_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

  /// Throws ShapeError or ConfigError on a batch that does not fit.
  void check(const StepBatch& batch, bool training) const {
    check_rows(batch.x, training ? limits_.rows : micro_rows_);
    const Index wanted = batch.x.rows * loss_.target_elements(stage_.outline().output_width());
    if (as_index(batch.targets.size()) != wanted)
      throw ShapeError{text("a batch of ", batch.x.rows, " rows has ", batch.targets.size(), " target elements; it takes ", wanted)};
    if constexpr (!D::uses_host_memory && requires { loss_.check(batch.targets, Index{}); })
      if (!batch.on_device) loss_.check(batch.targets, stage_.outline().output_width());
  }

  /// Whether begin() does not wait for what the device was given before.
  [[nodiscard]] bool begins_at_once(const StepBatch& batch) const {
    return batch.on_device || takes_at_once(device(), {batch.x.values().size_bytes(), batch.targets.size_bytes()});
  }

  /// From now on what begins with a batch that lies on the device has a copy of it, in one place for all.
  void copy_batches() { places_[0].is_left = places_[1].is_left = true; }

  /// Begins a step or an evaluation on this rank's rows, which have been checked.
  void begin(const StepBatch& batch, bool training, const StepBegin& step = {}) {
    training_ = training;
    if (training) {
      norm.begin(device());
      ++steps_;
    }
    const double scale = step.global_rows > 0 ? 1 / static_cast<double>(step.global_rows) : 0;
    store(device(), StepNumbers{.info = {steps_, step.lr_factor}, .scale = scale}, numbers_.data());
    if (training && scale != 0) norm.scale_loss(device(), numbers_.data());
    bind(batch);
  }
  /// Where the device has the rows that were begun with: their inputs and targets.
  [[nodiscard]] std::pair<const void*, const void*> where() const { return {batch_.x.data, batch_.targets.data()}; }
  /// Tells the loss how many rows there are on all ranks.
  void set_global_rows(Index rows) {
    store(device(), 1 / static_cast<double>(rows), &numbers_.data()->scale);
    norm.scale_loss(device(), numbers_.data());
  }
  void begin_prediction(Matrix<const Input> x) {
    check_rows(x, micro_rows_);
    training_ = false;
    bind({x, {}, 0});
  }

  void run(const plan::Instruction& i) {
    switch (i.op) {
      case plan::Op::forward:
        return stage_.forward(slot(i), i.first, i.last);
      case plan::Op::share_loss:
        return share_loss(slot(i), i.first);
      case plan::Op::loss:
        return take_loss(slot(i), i.first);
      case plan::Op::backward_input:
        return stage_.backward_input(slot(i), i.first, i.last);
      case plan::Op::backward_weight:
        return stage_.backward_weight(slot(i), i.first, i.last, i.accumulate);
      default:
        break;
    }
  }

  /// Updates this rank's slice of a unit: by its gradients, or by the sum of those at `gradients` where some are given. What it becomes is
  /// left at `copies`, too, unless the step is skipped. Where the norm of the gradient is taken, none are given: it is of sums.
  void apply(int unit, std::span<const Gradient* const> gradients = {}, std::span<T* const> copies = {}) {
    const Gradient* const own = stage_.own_gradients(unit).data();
    if (gradients.empty()) gradients = {&own, 1};
    T* const values = stage_.own_values(unit).data();
    if constexpr (Stage::has_masters) copies = {&values, 1};
    update<optim::state_fields<Optimizer>>(device(), optimizer_, numbers_.data(), stage_.own_masters(unit), gradients,
                                           optimizer_state_[as_size(unit)].span(), copies);
  }

  /// An instruction with those that follow it, `count` in all, whose rows may be taken together (see joined). Calls between() after each
  /// product.
  template <class Between>
  void run_joined(const plan::Instruction& i, int count, Between&& between) {
    const std::span<Slot> all = std::span{step_slots_}.subspan(as_size(i.micro_batch), as_size(count));
    for (int layer = i.last - 1; layer >= i.first; --layer) {
      if (lie_together(all, layer)) {
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

  /// The tensor that a message carries.
  [[nodiscard]] std::span<T> boundary(const plan::Instruction& i) {
    return (i.tensor == plan::Tensor::activation ? stage_.activation(slot(i), i.first) : stage_.gradient(slot(i), i.first)).values();
  }
  /// The model's output for the rows of a prediction, in memory of the host.
  [[nodiscard]] Matrix<const Input> output() {
    const Matrix<const T> own = device_output();
    if constexpr (D::uses_host_memory) {
      return own;
    } else {
      const auto& read = on_host(device(), own.values());
      output_.assign(read.begin(), read.end());
      return {output_.data(), own.rows, own.cols};
    }
  }

  /// The same where each rank of a group has some columns of it: `gather(own, all)` brings these together.
  template <class Gather>
  [[nodiscard]] Matrix<const Input> join_output(const Gather& gather) {
    const Matrix<const T> own = device_output();
    const Index size = own.size(), count = part_.count;
    if (gathered_.size() < size * count) gathered_ = allocate<T>(device(), size * count);
    const std::span<T> all = gathered_.span().first(as_size(size * count));
    gather(own.values(), all);
    const auto& read = on_host(device(), std::span<const T>{all});
    output_.resize(all.size());
    const Matrix<Input> whole{output_.data(), own.rows, own.cols * count};
    for (Index r = 0; r < own.rows; ++r)
      for (Index rank = 0; rank < count; ++rank)
        std::copy_n(read.data() + rank * size + r * own.cols, own.cols, whole.row(r) + rank * own.cols);
    return whole;
  }
  /// What this rank knows of the loss of a micro-batch's rows from its columns of the output, and room for what all of its group know.
  [[nodiscard]] std::span<Gradient> own_parts() { return parts_.span().first(as_size(part_elements_)); }
  [[nodiscard]] std::span<Gradient> all_parts() {
    return parts_.span().subspan(as_size(part_limit_), as_size(part_elements_ * part_.count));
  }

  /// Where a slice of a unit's sum comes that is to be added to what is there, and that addition.
  [[nodiscard]] std::span<Gradient> scratch(int unit) {
    return scratch_[scratch_of_[as_size(unit)]].first(stage_.own_gradients(unit).size());
  }
  void add_scratch(int unit) {
    const std::span<Gradient> own = stage_.own_gradients(unit);
    const Index elements = as_index(own.size());
    const Matrix<Gradient> sum{own.data(), 1, elements};
    add(device(), Matrix<const Gradient>{sum}, Matrix<const Gradient>{scratch(unit).data(), 1, elements}, sum);
  }

  /// The norm of the gradient, where the plan takes it: of each unit before it is reduced, then this rank's part of the square, and what
  /// becomes of the step when the square is that of all ranks.
  void watch(int unit) { norm.watch(device(), unit); }
  void add_squares() { norm.add_squares(device(), &numbers_.data()->square); }
  void judge() { norm.judge(device(), numbers_.data()); }

  /// What the device knows of a step, which ranks add up: its loss and right rows, and the square of the norm of its gradient.
  [[nodiscard]] std::span<double> sums() { return {&numbers_.data()->sums.loss, 2}; }
  [[nodiscard]] std::span<double> square() { return {&numbers_.data()->square, 1}; }
  /// All that it knows, when it is through.
  [[nodiscard]] StepNumbers numbers() const { return on_host(device(), numbers_.span()).front(); }
  /// The same of what the device was given so far, for later.
  [[nodiscard]] DeviceRead<D, StepNumbers> read_numbers() const { return read_later(device(), numbers_.data()); }

  GradientNorm<Stage> norm;

 private:
  [[nodiscard]] Matrix<const T> device_output() const { return stage_.activation(evaluation_slots_.front(), stage_.outline().size()); }

  void make_memory(const plan::Plan& plan) {
    const nn::Outline& model = stage_.outline();
    const plan::Boundaries boundaries{model, plan};
    memory_ = allocate<T>(device(), boundaries.row_elements() * micro_rows_);
    const auto slots_of = [&](const plan::Liveness& memory, int micro_batches) {
      std::vector<Slot> made(as_size(micro_batches), Slot{model.size()});
      const auto at = [&](plan::Kind kind, int m, int number) {
        const Index offset = memory.offset(kind, m, number);
        return offset == plan::Liveness::nowhere ? nullptr : memory_.data() + offset * micro_rows_;
      };
      for (int m = 0; m < micro_batches; ++m)
        for (int number = 0; number <= model.size(); ++number) {
          const auto n = as_size(number);
          made[as_size(m)].activations[n] = at(plan::Kind::activation, m, number);
          made[as_size(m)].gradients[n] = at(plan::Kind::gradient, m, number);
          if (number < model.size()) made[as_size(m)].saved[n] = at(plan::Kind::saved, m, number);
        }
      return made;
    };
    step_slots_ = slots_of(boundaries.step, plan.micro_batches);
    evaluation_slots_ = slots_of(boundaries.evaluation, 1);
  }

  /// One for each buffer of gradients, where sums of slices are added up.
  void make_scratch(const plan::Plan& plan, const std::vector<std::span<Gradient>>& lent) {
    for (const plan::Unit& unit : plan.units) scratch_of_.push_back(as_size(unit.buffer));
    for (const Index elements : plan::layout(plan, stage_.outline()).scratch) {
      const std::size_t number = scratch_.size();
      const bool is_lent = number < lent.size() && !lent[number].empty();
      own_scratch_.push_back(allocate<Gradient>(device(), is_lent ? 0 : elements));
      scratch_.push_back(is_lent ? lent[number] : own_scratch_.back().span());
    }
  }

  /// For a loss of columns that are divided over a group.
  void make_parts() {
    check_output<Loss, D, T>(stage_.outline());
    if constexpr (takes_shards)
      if (stage_.outline().output_is_sharded) {
        part_limit_ = micro_rows_ * Loss::part_numbers;
        parts_ = allocate<Gradient>(device(), part_limit_ * (1 + part_.count));
      }
  }

  /// For what a device cannot read where the host has it, or computes with in another type.
  void make_input() {
    if constexpr (!D::uses_host_memory) {
      const nn::Outline& model = stage_.outline();
      input_ = allocate<Input>(device(), limits_.rows * model.width(0));
      if constexpr (rounds_input) rounded_input_ = allocate<T>(device(), limits_.rows * model.width(0));
      target_input_ = allocate<Target>(device(), limits_.rows * loss_.target_elements(model.output_width()));
      reserve_uploads(device(), {input_.span().size_bytes(), target_input_.span().size_bytes()});
    }
  }

  void check_rows(Matrix<const Input> x, Index limit) const {
    if (x.rows > limit)
      throw ShapeError{text("a batch of ", x.rows, " rows was given, but memory was made for at most ", limit,
                            "; make the trainer with a larger batch, or cut this one")};
    if (x.rows > 0 && x.cols != stage_.outline().width(0))
      throw ShapeError{text("samples of ", x.cols, " values were given, but the model takes ", stage_.outline().width(0))};
  }

  /// Cuts the batch in micro-batches. The input is read where the caller holds it, if the device can.
  void bind(StepBatch batch) {
    if constexpr (!D::uses_host_memory) {
      if (!batch.on_device || is_elsewhere(batch)) {
        const auto bring = [&]<class E>(std::span<const E> from, E* to) {
          batch.on_device ? copy(device(), from, to) : upload(device(), from, to);
        };
        bring(batch.x.values(), input_.data());
        bring(batch.targets, target_input_.data());
        batch.x.data = input_.data();
        batch.targets = target_input_.span().first(batch.targets.size());
      }
    }
    batch_.targets = batch.targets;
    if constexpr (rounds_input) {
      const Matrix<T> rounded{rounded_input_.data(), batch.x.rows, batch.x.cols};
      convert(device(), batch.x, rounded);
      batch_.x = rounded;
    } else {
      batch_.x = batch.x;
    }
    const Matrix<const T> x = batch_.x;
    const auto& layers = stage_.outline().layers;
    Index first = 0;
    for (Slot& slot : training_ ? step_slots_ : evaluation_slots_) {
      slot.rows = std::min(micro_rows_, x.rows - first);
      T* const rows = const_cast<T*>(x.data) + first * x.cols;  // read only: no layer writes over the batch
      slot.activations[0] = rows;
      for (std::size_t layer = 0; layer < layers.size() && layers[layer].is_view; ++layer) slot.activations[layer + 1] = rows;
      first += slot.rows;
    }
  }

  /// Where a caller has batches on the device.
  struct BatchPlace {
    const Input* x = nullptr;
    const Target* targets = nullptr;
    bool is_left = false;  // there were batches in other places
  };
  /// What a device has recorded reads a batch where it lies. So batches of steps, or of evaluations, that have come from more than one
  /// place are copied to one.
  bool is_elsewhere(const StepBatch& batch) {
    BatchPlace& place = places_[training_ ? 0 : 1];
    if (batch.x.rows == 0) return place.is_left;
    if (place.x == nullptr) place = {batch.x.data, batch.targets.data(), place.is_left};
    place.is_left = place.is_left || place.x != batch.x.data || place.targets != batch.targets.data();
    return place.is_left;
  }

  /// Whether the rows of a layer's tensors lie one after another, and nothing else is kept of them.
  [[nodiscard]] bool lie_together(std::span<const Slot> all, int layer) const {
    const nn::Outline& model = stage_.outline();
    if (model.layers[as_size(layer)].saved > 0) return false;
    const auto follow = [&](const std::vector<T*> Slot::*tensors, int boundary) {
      const auto b = as_size(boundary);
      for (std::size_t m = 1; m < all.size(); ++m)
        if (all[m].rows > 0 && (all[m].*tensors)[b] != (all[m - 1].*tensors)[b] + all[m - 1].rows * model.width(boundary)) return false;
      return true;
    };
    return follow(&Slot::activations, layer) && follow(&Slot::activations, layer + 1) && follow(&Slot::gradients, layer + 1);
  }

  [[nodiscard]] Slot& slot(const plan::Instruction& i) { return (training_ ? step_slots_ : evaluation_slots_)[as_size(i.micro_batch)]; }

  /// The targets of a micro-batch's rows.
  [[nodiscard]] std::span<const Target> targets(const Slot& slot) const {
    const Index width = loss_.target_elements(stage_.outline().output_width());
    const Index first = (slot.activations.front() - const_cast<T*>(batch_.x.data)) / batch_.x.cols;
    return batch_.targets.subspan(as_size(first * width), as_size(slot.rows * width));
  }
  /// Whether there is a loss to take: not of a prediction, and not of an empty share, as the gradients of no rows are zero.
  [[nodiscard]] bool has_loss(const Slot& slot) const { return !batch_.targets.empty() && slot.rows > 0; }

  void share_loss(Slot& slot, int boundary) {
    part_elements_ = 0;
    if constexpr (takes_shards) {
      if (!has_loss(slot)) return;
      part_elements_ = slot.rows * Loss::part_numbers;
      const Matrix<const T> own = stage_.activation(slot, boundary);
      loss_.part(device(), own, targets(slot), part_.index * own.cols, part_.count * own.cols,
                 Matrix<Gradient>{own_parts().data(), slot.rows, Loss::part_numbers});
    }
  }
  void take_loss(Slot& slot, int boundary) {
    if (!has_loss(slot)) return;
    const Matrix<const T> output = stage_.activation(slot, boundary);
    const Matrix<T> gradient = training_ ? stage_.gradient(slot, boundary) : Matrix<T>{};
    const bool counts = part_.index == 0;  // all ranks of the group find the same
    const double* const scale = &numbers_.data()->scale;
    LossSums* const sums = counts ? &numbers_.data()->sums : uncounted_.data();
    if constexpr (takes_shards)
      if (stage_.outline().output_is_sharded)
        return loss_.join(device(), output, targets(slot), part_.index * output.cols, part_.count * output.cols,
                          Matrix<const Gradient>{all_parts().data(), slot.rows * part_.count, Loss::part_numbers}, scale, gradient, sums);
    loss_(device(), output, targets(slot), scale, gradient, sums);
  }

  static constexpr bool takes_shards = loss::ShardedLoss<Loss, D, T>;
  static constexpr bool rounds_input = !std::same_as<T, Input>;

  nn::Part part_;  // of layers that are divided
  Loss loss_;
  Optimizer optimizer_;
  Stage stage_;
  Limits limits_;
  Index micro_rows_;  // of a full micro-batch
  DeviceMemory<D, StepNumbers> numbers_;
  DeviceMemory<D, LossSums> uncounted_;
  DeviceMemory<D, T> memory_;  // of boundaries and what layers save
  std::vector<DeviceMemory<D, Gradient>> optimizer_state_;
  std::vector<DeviceMemory<D, Gradient>> own_scratch_;
  std::vector<std::span<Gradient>> scratch_;
  std::vector<std::size_t> scratch_of_;  // units
  std::vector<Slot> step_slots_, evaluation_slots_;
  DeviceMemory<D, Gradient> parts_;           // this rank's, then those of all
  Index part_elements_ = 0, part_limit_ = 0;  // of this rank's: at present, at most
  DeviceMemory<D, Input> input_;              // of a step, where the device cannot read the caller's memory
  DeviceMemory<D, Target> target_input_;
  DeviceMemory<D, T> rounded_input_;
  std::array<BatchPlace, 2> places_{};  // of steps, of evaluations
  DeviceMemory<D, T> gathered_;         // the output of a prediction from all ranks that have columns of it
  std::vector<Input> output_;           // the same, as it is given
  std::int64_t steps_ = 0;
  bool training_ = false;
  Batch<T, Target> batch_;  // as the device has it
};

}  // namespace pdp::engine
