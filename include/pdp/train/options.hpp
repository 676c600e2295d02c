#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/train/callback.hpp>
#include <pdp/train/checkpoint_options.hpp>

namespace pdp {

/// The options of a Trainer. All ranks must give the same, except for `threads`.
struct TrainerOptions {
  static constexpr Index most_samples = std::numeric_limits<std::int32_t>::max();  // in a global batch

  Index global_batch = 0;  // samples per step, over all ranks; the mathematics depends on this, not on the number of ranks
  std::uint64_t seed = 0;  // for the initial parameters and the order of samples
  Shape input{};           // shape of a sample; needed only if the model takes any width
  double clip_norm = 0;  // maximum norm of a step's gradient over all parameters; a gradient with a larger norm is scaled down. 0: no limit
  plan::NonFinite non_finite =
      plan::NonFinite::stop_on_loss;  // reaction to NaN or infinity; a step that is skipped counts for the schedule

  std::optional<LossScaling> loss_scaling{};  // default: LossScaling{} if the model computes in float16, otherwise none

  int threads = 1;  // per rank; more than one needs pdp::onednn, and a core for each

  /// Returns a CPU device with these threads. Throws ConfigError if their number is not valid.
  [[nodiscard]] cpu::Cpu cpu() const;
  /// Returns a message that says why some of a rank's threads are useless, or an empty string if none is. `cores`: number of cores that the
  /// rank may use; 0: unknown.
  [[nodiscard]] std::string useless_threads(int cores) const;
  [[nodiscard]] plan::GradientPolicy gradient_policy() const { return {clip_norm, non_finite, loss_scaling}; }
};

/// The options of Trainer::fit(). All ranks must give the same, except for `progress`.
struct FitOptions {
  int epochs = 1;
  bool shuffle = true;
  bool progress = true;  // shows a progress bar if standard error is a terminal
  CheckpointOptions checkpoint{};
  data::AnyDataset validation{};       // a pointer to the dataset that is evaluated after each epoch; borrowed
  std::vector<metric::Any> metrics{};  // of the validation set
  /// Metrics of the training set, which is evaluated after each epoch if there are some: without random changes of samples, with the
  /// parameters that the epoch ends with. That takes the time of a forward pass of the whole set.
  std::vector<metric::Any> training_metrics{};
  std::vector<Callback> callbacks{};  // called in this order after each epoch
  /// In place of `epochs`: ends when the trainer has made this many steps in all, earlier fits and loaded checkpoints included, also within
  /// an epoch. An epoch that is cut short gives no Epoch. 0: no limit.
  std::int64_t steps = 0;
};

namespace detail {

/// Says on standard error why some of a rank's threads are useless, if some are.
void warn_of_useless_threads(const TrainerOptions& options);

/// Returns the options. Adds the default loss scaling if the model is in float16 and none is set.
template <class Precision>
TrainerOptions with_loss_scaling(TrainerOptions options) {
  if (std::same_as<typename Precision::compute, Float16> && !options.loss_scaling) options.loss_scaling.emplace();
  return options;
}

}  // namespace detail

/// Returns the shape of a sample: that of the options if it is set, else that of the model. Throws ConfigError if neither has one.
template <nn::Block Model>
Shape input_of(const Model& model, const TrainerOptions& options) {
  if (options.input.known()) return options.input;
  const Index elements = nn::input_elements(model);
  if (elements == 0)
    throw ConfigError{
        "the model takes samples of several shapes, so the trainer needs theirs, as in {.input = Shape{784}} or {.input = Shape{1, 28, "
        "28}}"};
  return Shape{elements};
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/options.hpp>
#endif
