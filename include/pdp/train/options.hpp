#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/plan/gradient_policy.hpp>

namespace pdp {

struct TrainerOptions {
  static constexpr Index most_samples = std::numeric_limits<std::int32_t>::max();  // of a global batch

  Index global_batch = 0;  // samples of a step, over all ranks: what the mathematics depends on
  std::uint64_t seed = 0;  // of the first parameters and of the order of samples
  Shape input{};           // of a sample; needed only where the model takes any width
  double clip_norm = 0;    // the largest norm of a step's gradient over all parameters; a longer one is scaled down to it. 0: any
  plan::NonFinite non_finite =
      plan::NonFinite::ignore;  // what becomes of a gradient with NaN or infinity in it; a step that is skipped counts for the schedule

  std::optional<LossScaling> loss_scaling{};  // of a model in float16, which has LossScaling{} without a word

  int threads = 1;  // of each rank; more than one takes pdp::onednn, and a core for each

  [[nodiscard]] cpu::Cpu cpu() const;
  /// Why some threads of a rank that may use so many cores (0: nobody knows) are of no use, in words; nothing where all are.
  [[nodiscard]] std::string useless_threads(int cores) const;
  [[nodiscard]] plan::GradientPolicy gradient_policy() const { return {clip_norm, non_finite, loss_scaling}; }
};

struct FitOptions {
  int epochs = 1;
  bool shuffle = true;
  bool progress = true;  // a bar, where standard error is a terminal
};

namespace detail {

/// Returns the options, with the scaling of losses that a model in float16 has without a word.
template <class Precision>
TrainerOptions with_loss_scaling(TrainerOptions options) {
  if (std::same_as<typename Precision::compute, Float16> && !options.loss_scaling) options.loss_scaling.emplace();
  return options;
}

}  // namespace detail

/// The shape of a sample: as the options say, else as the model takes it. Throws ConfigError where neither does.
template <nn::Block Model>
Shape input_of(const Model& model, const TrainerOptions& options) {
  if (options.input.known()) return options.input;
  const Index elements = nn::input_elements(model);
  if (elements == 0)
    throw ConfigError{"the model takes samples of any shape, so the trainer cannot know theirs; say it, as in {.input = Shape{784}}"};
  return Shape{elements};
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/options.hpp>
#endif
