#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::nn {

/// The initial distribution of a parameter: uniform in [-bound, bound), with bound^2 = numerator / fan. The fan is the number of inputs of
/// the layer, or of its inputs and outputs; the layer says how many it has. Values are keyed by (seed, name of the parameter, index of the
/// element in the whole tensor), so they do not depend on how a model is divided.
struct Initializer {
  enum class Fan { in, in_and_out };

  double numerator = 0;
  Fan fan = Fan::in;

  [[nodiscard]] double bound(Index fan_in, Index fan_out) const;

  friend constexpr bool operator==(const Initializer&, const Initializer&) = default;
};

/// PyTorch's default for Linear, weight and bias: bound 1 / sqrt(fan_in).
constexpr Initializer pytorch_default{1, Initializer::Fan::in};
/// He et al., "Delving deep into rectifiers", ICCV 2015, for ReLU: bound sqrt(6 / fan_in).
constexpr Initializer kaiming_uniform{6, Initializer::Fan::in};
/// Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010: bound sqrt(6 / (fan_in +
/// fan_out)).
constexpr Initializer xavier_uniform{6, Initializer::Fan::in_and_out};
/// Bound 0.
constexpr Initializer zeros{0, Initializer::Fan::in};

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/initializer.hpp>
#endif
