#pragma once

/// Definitions for pdp/optim/reduce_on_plateau.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<fmt/format.h>)
#error "pdp needs fmt 9 or newer (Debian: libfmt-dev)"
#include <see the error above>
#endif
#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/optim/reduce_on_plateau.hpp>

namespace pdp::optim {

PDP_INLINE ReduceOnPlateau::ReduceOnPlateau(const ReduceOnPlateauOptions& options) : options_{options} {
  const auto check = [](const char* name, double value, double most) {
    if (!is_finite(value) || value < 0 || value > most)
      throw ConfigError{text("ReduceOnPlateau was given ", name, " = ", value, "; give it a number from 0 to ", most)};
  };
  check("by", as_double(options.by), 1);
  check("least", as_double(options.least), 1);
  check("patience", as_double(options.patience), 1e9);
  check("cooldown", as_double(options.cooldown), 1e9);
  check("threshold", options.threshold, options.is_relative ? 1 : 1e300);
}

PDP_INLINE bool ReduceOnPlateau::improves(double value) const {
  if (!is_finite(value)) return false;
  if (!has_best_) return true;
  const double step = options_.is_relative ? options_.threshold * best_ : options_.threshold;
  return options_.prefers_larger ? value > best_ + step : value < best_ - step;
}

PDP_INLINE double ReduceOnPlateau::factor_after(double value) {
  if (improves(value)) {
    best_ = value;
    has_best_ = true;
    waited_ = 0;
  } else {
    ++waited_;
  }
  if (resting_ > 0) {
    --resting_;
    waited_ = 0;
  }
  if (waited_ > options_.patience) {
    factor_ = std::max(factor_ * as_double(options_.by), std::min(factor_, as_double(options_.least)));
    resting_ = options_.cooldown;
    waited_ = 0;
  }
  return factor_;
}

PDP_INLINE std::string ReduceOnPlateau::state() const {
  return fmt::format("{} {} {} {} {}", factor_, best_, has_best_ ? 1 : 0, waited_, resting_);
}

PDP_INLINE void ReduceOnPlateau::set_state(std::string_view state) {
  ReduceOnPlateau other{options_};
  int has_best = 0;
  const char* next = state.data();
  const char* const end = next + state.size();
  bool is_valid = true;
  const auto read = [&](auto& number) {
    const auto [behind, error] = std::from_chars(next, end, number);
    is_valid = is_valid && error == std::errc{};
    next = behind != end && *behind == ' ' ? behind + 1 : behind;
  };
  read(other.factor_);
  read(other.best_);
  read(has_best);
  read(other.waited_);
  read(other.resting_);
  other.has_best_ = has_best == 1;
  is_valid = is_valid && next == end && !state.ends_with(' ') && (has_best == 0 || has_best == 1) && is_finite(other.factor_) &&
             other.factor_ >= 0 && other.factor_ <= 1 && is_finite(other.best_) && other.waited_ >= 0 && other.resting_ >= 0;
  if (!is_valid)
    throw ConfigError{text("ReduceOnPlateau was given the state ", in_quotes(state), "; give it a text that its state() has returned")};
  *this = other;
}

}  // namespace pdp::optim
