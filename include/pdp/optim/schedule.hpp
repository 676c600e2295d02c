#pragma once

#include <concepts>
#include <cstdint>

#include <pdp/core/cast.hpp>
#include <pdp/core/copyable.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::optim {

/// A learning-rate schedule: factor(step) returns the factor for the optimizer's rate in step 0, 1, 2, .... It must accept any number of
/// steps, since a trainer also calls it for some steps after the end of training.
template <class S>
concept Schedule = Copyable<S> && requires(const S& schedule, std::int64_t step) {
  { schedule.factor(step) } -> std::same_as<float>;
};

/// Throws ConfigError if a schedule has the optional member check(), and a parameter of the schedule is out of range. A trainer makes this
/// call on every rank.
template <Schedule S>
void check(const S& schedule) {
  if constexpr (requires { schedule.check(); }) schedule.check();
}

/// The factor 1 in every step.
struct Constant {
  [[nodiscard]] constexpr float factor(std::int64_t) const { return 1; }
};

namespace detail {

/// Throw ConfigError if a parameter of a schedule is out of range.
void check_steps(const char* schedule, std::int64_t steps, std::int64_t least);
void check_number(const char* schedule, const char* name, double value, double least, double most);

}  // namespace detail

/// Changes linearly from 1 in step 0 to `to` in step `steps`, and stays there.
struct Linear {
  std::int64_t steps = 1;
  float to = 0;
  [[nodiscard]] constexpr float factor(std::int64_t step) const {
    if (step >= steps) return to;
    return static_cast<float>(1 - (1 - as_double(to)) * as_double(step) / as_double(steps));
  }
  void check() const;
};

/// Follows half a cosine from 1 in step 0 to `to` in step `steps`, and stays there. Loshchilov, Hutter, "SGDR: stochastic gradient descent
/// with warm restarts", ICLR 2017, without the restarts.
struct Cosine {
  std::int64_t steps = 1;
  float to = 0;
  [[nodiscard]] float factor(std::int64_t step) const;
  void check() const;
};

/// Is multiplied by `by` after every `steps` steps, as PyTorch's StepLR.
struct StepDecay {
  std::int64_t steps = 1;
  float by = 0.1f;
  [[nodiscard]] float factor(std::int64_t step) const;
  void check() const;
};

/// Is multiplied by `by` over `steps` steps, a little in each: by^(step / steps). With `steps` 1 it is PyTorch's ExponentialLR.
struct Exponential {
  std::int64_t steps = 1;
  float by = 0.9f;
  [[nodiscard]] float factor(std::int64_t step) const;
  void check() const;
};

/// Repeats half a cosine from 1 to `to`. The first one takes `steps` steps, and each `growth` times as many as the one before. Loshchilov,
/// Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
struct CosineRestarts {
  std::int64_t steps = 1;
  int growth = 1;
  float to = 0;
  [[nodiscard]] float factor(std::int64_t step) const;
  void check() const;
};

/// Rises along half a cosine from `from` in step 0 to 1 in step rise * steps - 1. Then falls along another one to `to` in step `steps` - 1,
/// and stays there. The optimizer's rate is the largest one. Smith, "A disciplined approach to neural network hyper-parameters", 2018, and
/// Smith, Topin, "Super-convergence", 2018; the defaults are those of PyTorch's OneCycleLR.
struct OneCycle {
  std::int64_t steps = 1;
  float rise = 0.3f;  // part of the steps, from 0 to 1
  float from = 0.04f;
  float to = 4e-6f;
  [[nodiscard]] float factor(std::int64_t step) const;
  void check() const;
};

/// Rises linearly from 1 / steps in step 0 to 1 in step `steps` - 1. Then follows another schedule, from its own step 0.
template <Schedule Then = Constant>
struct WarmUp {
  std::int64_t steps = 1;
  Then then{};
  [[nodiscard]] constexpr float factor(std::int64_t step) const {
    return step < steps ? static_cast<float>(as_double(step + 1) / as_double(steps)) : then.factor(step - steps);
  }
  void check() const {
    detail::check_steps("WarmUp", steps, 0);
    optim::check(then);
  }
};

static_assert(Schedule<Constant> && Schedule<Linear> && Schedule<Cosine> && Schedule<StepDecay> && Schedule<Exponential> &&
              Schedule<CosineRestarts> && Schedule<OneCycle> && Schedule<WarmUp<Cosine>>);

}  // namespace pdp::optim

#ifndef PDP_SEPARATE_CORE
#include <pdp/optim/source/schedule.hpp>
#endif
