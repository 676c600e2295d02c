#pragma once

/// Definitions for pdp/train/fit_loop.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/train/fit_loop.hpp>

namespace pdp {

PDP_INLINE std::vector<Epoch> detail::FitLoop::run(std::int64_t end) {
  std::vector<Epoch> history;
  checkpoint::Position& at = position_.get();
  history.reserve(as_size(std::clamp<std::int64_t>(end - at.epoch, 0, 1000)));  // so that few epochs allocate
  Next next = agree(call([&](const Callback& callback) { return callback.begin(*this); }), false);
  while (at.epoch < end && next == Next::proceed && !has_all_steps(0)) {
    EpochRun run{at, steps_of_epoch(), options_.progress && rank() == 0};
    run_steps(run);
    if (at.batch < steps_of_epoch()) {
      if (run.must_stop()) save_and_stop();
      break;  // a callback or the limit of steps has ended the training within the epoch
    }
    Epoch& epoch = history.emplace_back(run.end());
    epoch.learning_rate = learning_rate();
    if (!options_.training_metrics.empty()) epoch.training = evaluate(data_, options_.training_metrics);
    if (options_.validation) epoch.validation = evaluate(options_.validation, options_.metrics);
    next = functions_.epoch(epoch);
    const Next others = call([&](const Callback& callback) { return callback(epoch, *this); });
    next = agree(std::max({next, others, run.ends() ? Next::stop : Next::proceed}), functions_.epoch_may_stop);
    save_after_epoch();
    if (run.must_stop()) save_and_stop();
  }
  if (at.epoch < end) position_.end_early();
  save_at_end();
  for (const Callback& each : options_.callbacks) each.end(*this);
  return history;
}

PDP_INLINE Next detail::FitLoop::call(const std::function<Next(const Callback&)>& each) const {
  Next answer = Next::proceed;
  for (const Callback& callback : options_.callbacks) answer = std::max(answer, each(callback));
  return answer;
}

PDP_INLINE Next detail::FitLoop::agree(Next own, bool answers) {
  if (options_.callbacks.empty() && !answers) return own;
  return largest(own == Next::stop ? 1 : 0) > 0 ? Next::stop : Next::proceed;
}

}  // namespace pdp
