#pragma once

#include <concepts>
#include <cstdint>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::optim {

/// A learning-rate schedule: the factor for the optimizer's rate in step 0, 1, 2, ..., however many a training has; a trainer asks for some
/// of later steps, too.
template <class S>
concept Schedule = std::copyable<S> && requires(const S& schedule, std::int64_t step) {
  { schedule.factor(step) } -> std::same_as<float>;
};

struct Constant {
  [[nodiscard]] constexpr float factor(std::int64_t) const { return 1; }
};

/// From 1 in step 0 along a line to `to` in step `steps`, and `to` after that.
struct Linear {
  std::int64_t steps = 1;
  float to = 0;
  [[nodiscard]] constexpr float factor(std::int64_t step) const {
    if (step >= steps) return to;
    return static_cast<float>(1 - (1 - static_cast<double>(to)) * static_cast<double>(step) / static_cast<double>(steps));
  }
};

/// From 1 in step 0 along half a cosine to `to` in step `steps`, and `to` after that.
/// Loshchilov, Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, without the restarts.
struct Cosine {
  std::int64_t steps = 1;
  float to = 0;
  [[nodiscard]] float factor(std::int64_t step) const;
};

/// From 1 / steps in step 0 along a line to 1 in step `steps` - 1; after that another schedule, from its own step 0.
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
