#pragma once

#include <concepts>
#include <cstdint>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::optim {

/// A learning-rate schedule: factor(step) returns the factor for the optimizer's rate in step 0, 1, 2, .... It must accept any number of
/// steps, since a trainer also calls it for some steps after the end of training.
template <class S>
concept Schedule = std::copyable<S> && requires(const S& schedule, std::int64_t step) {
  { schedule.factor(step) } -> std::same_as<float>;
};

/// The factor 1 in every step.
struct Constant {
  [[nodiscard]] constexpr float factor(std::int64_t) const { return 1; }
};

/// Changes linearly from 1 in step 0 to `to` in step `steps`, and stays there.
struct Linear {
  std::int64_t steps = 1;
  float to = 0;
  [[nodiscard]] constexpr float factor(std::int64_t step) const {
    if (step >= steps) return to;
    return static_cast<float>(1 - (1 - static_cast<double>(to)) * static_cast<double>(step) / static_cast<double>(steps));
  }
};

/// Follows half a cosine from 1 in step 0 to `to` in step `steps`, and stays there. Loshchilov, Hutter, "SGDR: stochastic gradient descent
/// with warm restarts", ICLR 2017, without the restarts.
struct Cosine {
  std::int64_t steps = 1;
  float to = 0;
  [[nodiscard]] float factor(std::int64_t step) const;
};

/// Rises linearly from 1 / steps in step 0 to 1 in step `steps` - 1. Then follows another schedule, from its own step 0.
template <Schedule Then = Constant>
struct WarmUp {
  std::int64_t steps = 1;
  Then then{};
  [[nodiscard]] constexpr float factor(std::int64_t step) const {
    return step < steps ? static_cast<float>(static_cast<double>(step + 1) / static_cast<double>(steps)) : then.factor(step - steps);
  }
};

}  // namespace pdp::optim

#ifndef PDP_SEPARATE_CORE
#include <pdp/optim/source/schedule.hpp>
#endif
