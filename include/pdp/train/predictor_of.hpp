#pragma once

#include <pdp/core/device.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/inference/options.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/train/trainer_parameters.hpp>

namespace pdp {

/// Returns a predictor with the parameters that a trainer has now, on every rank. Every rank makes this call, and needs memory for all
/// parameters. By default it computes as many rows at a time as the trainer does, and takes samples of the same shape. Throws ConfigError
/// if an option is out of range.
template <class C, class S, class TaskType, SupportedPrecision P, Device D>
[[nodiscard]] Predictor<decltype(TaskType::model), typename P::master> predictor_of(Trainer<C, S, TaskType, P, D>& trainer,
                                                                                    PredictorOptions options = {}) {
  using Made = Predictor<decltype(TaskType::model), typename P::master>;
  if (options.rows == 0) options.rows = trainer.engine().evaluation_rows();
  if (!options.input.known()) options.input = trainer.options().input;
  detail::GatheredParameters<typename P::master> all{trainer.world(), trainer};
  all.broadcast(trainer.world(), trainer.engine().stage().device());
  return Made{trainer.task().model, [&all](typename Made::Stage& stage) { all.set(stage); }, options};
}

}  // namespace pdp
