#pragma once

/// Definitions for pdp/train/callbacks.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/optim/reduce_on_plateau.hpp>
#include <pdp/train/callbacks.hpp>

namespace pdp {

namespace detail {

/// Returns whether a result is better than the best one so far, by more than `least`.
[[nodiscard]] PDP_INLINE bool is_better(double value, double best, double least, bool higher_is_better) {
  if (is_nan(value)) return false;
  if (is_nan(best)) return true;
  return higher_is_better ? value > best + least : value < best - least;
}

}  // namespace detail

PDP_INLINE Next EarlyStopping::begin(FitContext& context) {
  if (patience < 1) throw ConfigError{text("EarlyStopping has patience = ", patience, "; expected 1 epoch or more")};
  if (!(least_change >= 0)) throw ConfigError{text("EarlyStopping has least_change = ", least_change, "; expected 0 or more")};
  const checkpoint::Values& kept = context.values();
  best.reset();
  waited = 0;
  if (!context.is_continued()) return Next::proceed;
  if (const auto found = kept.find("pdp.early_stopping.best"); found != kept.end()) best = std::get<double>(found->second);
  if (const auto found = kept.find("pdp.early_stopping.waited"); found != kept.end())
    waited = static_cast<int>(std::get<std::int64_t>(found->second));
  return waited >= patience ? Next::stop : Next::proceed;
}

PDP_INLINE Next EarlyStopping::operator()(const Epoch& epoch, FitContext& context) {
  const double value = epoch.value(watches);
  if (!best || detail::is_better(value, *best, least_change, epoch.higher_is_better(watches))) {
    best = value;
    waited = 0;
  } else {
    ++waited;
  }
  context.values().insert_or_assign("pdp.early_stopping.best", *best);
  context.values().insert_or_assign("pdp.early_stopping.waited", std::int64_t{waited});
  return waited >= patience ? Next::stop : Next::proceed;
}

PDP_INLINE void KeepBest::begin(FitContext&) {
  epoch = -1;
  parameters.clear();
}

PDP_INLINE void KeepBest::operator()(const Epoch& ended, FitContext& context) {
  const double found = ended.value(watches);
  if (epoch >= 0 && !detail::is_better(found, value, 0, ended.higher_is_better(watches))) return;
  epoch = ended.number;
  value = found;
  parameters = context.own_parameters();
}

PDP_INLINE void KeepBest::end(FitContext& context) const {
  if (epoch >= 0) context.set_own_parameters(parameters);
}

namespace detail {

/// Returns the value with the options of a callback. Throws ConfigError if one is out of range.
[[nodiscard]] PDP_INLINE optim::ReduceOnPlateau plateau_of(const ReduceLearningRateOnPlateau& options, bool prefers_larger) {
  return optim::ReduceOnPlateau{{.by = options.by,
                                 .patience = options.patience,
                                 .threshold = options.threshold,
                                 .is_relative = options.is_relative,
                                 .cooldown = options.cooldown,
                                 .least = options.least,
                                 .prefers_larger = prefers_larger}};
}

}  // namespace detail

PDP_INLINE void ReduceLearningRateOnPlateau::begin(FitContext& context) {
  static_cast<void>(detail::plateau_of(*this, false));
  state.clear();
  const checkpoint::Values& kept = context.values();
  if (const auto found = kept.find("pdp.reduce_on_plateau"); context.is_continued() && found != kept.end())
    state = std::get<std::string>(found->second);
}

PDP_INLINE void ReduceLearningRateOnPlateau::operator()(const Epoch& epoch, FitContext& context) {
  auto plateau = detail::plateau_of(*this, epoch.higher_is_better(watches));
  if (!state.empty()) plateau.set_state(state);
  const double before = plateau.factor(), after = plateau.factor_after(epoch.value(watches));
  if (after != before) context.set_learning_rate_factor(context.learning_rate_factor() * (after / before));
  state = plateau.state();
  context.values().insert_or_assign("pdp.reduce_on_plateau", state);
}

PDP_INLINE void LearningRateLog::begin(FitContext& context) {
  if (context.rank() != 0) return;
  file_ = std::make_shared<LineFile>(path_.string());
  file_->line("epoch,learning_rate");
}
PDP_INLINE void LearningRateLog::operator()(const Epoch& epoch) const {
  if (file_) file_->line(fmt::format("{},{:.7g}", epoch.number, epoch.learning_rate));
}
PDP_INLINE void LearningRateLog::end(FitContext&) const {
  if (file_) file_->close();
}

}  // namespace pdp
