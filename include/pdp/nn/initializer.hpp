#pragma once

#include <cstdint>

#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::nn {

/// The distribution of the initial values of a parameter. Its scale is sqrt(numerator / fan). The fan is the number of inputs of the layer,
/// of its outputs, or of both; the layer says how many it has. Values are functions of the seed, the name of the parameter, and the number
/// of the element in the whole tensor, so they do not depend on how a model is divided.
struct Initializer {
  enum class Fan : std::uint8_t { in, in_and_out, out, none };  // none: the scale is sqrt(numerator)
  enum class Kind : std::uint8_t {
    uniform,           // in [-scale, scale)
    normal,            // with the standard deviation `scale`
    truncated_normal,  // a normal number that is drawn again until it is within two standard deviations of the mean
    constant,          // the mean
    orthogonal,        // rows or columns of the tensor, whichever are fewer, have the length `scale` and are at right angles
    function,          // of the program
  };
  /// Returns the initial value of an element. `element`: its number in the tensor, as in a file: PyTorch's order. `key`: identifies the
  /// seed and the tensor; random::uniform<double>(key, element) is a number that depends on both.
  using Function = double (*)(random::Key key, Index element, Index fan_in, Index fan_out);

  double numerator = 0;
  Fan fan = Fan::in;
  Kind kind = Kind::uniform;
  double mean = 0;  // of normal numbers; the value of a constant
  Function own = nullptr;

  [[nodiscard]] double scale(Index fan_in, Index fan_out) const;

  friend constexpr bool operator==(const Initializer&, const Initializer&) = default;
};

/// PyTorch's default for Linear, weight and bias: uniform, with the bound 1 / sqrt(fan_in).
constexpr Initializer pytorch_default{1, Initializer::Fan::in};
/// He et al., "Delving deep into rectifiers", ICCV 2015, for ReLU: the bound sqrt(6 / fan_in), or the standard deviation sqrt(2 / fan_in).
constexpr Initializer kaiming_uniform{6, Initializer::Fan::in};
constexpr Initializer kaiming_normal{2, Initializer::Fan::in, Initializer::Kind::normal};
/// Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010: the bound sqrt(6 / (fan_in +
/// fan_out)), or the standard deviation sqrt(2 / (fan_in + fan_out)).
constexpr Initializer xavier_uniform{6, Initializer::Fan::in_and_out};
constexpr Initializer xavier_normal{2, Initializer::Fan::in_and_out, Initializer::Kind::normal};

/// The same value for all elements.
constexpr Initializer constant(double value) { return {.kind = Initializer::Kind::constant, .mean = value}; }
constexpr Initializer zeros = constant(0);
constexpr Initializer ones = constant(1);
/// Uniform in [-bound, bound).
constexpr Initializer uniform(double bound) { return {bound * bound, Initializer::Fan::none}; }
constexpr Initializer normal(double deviation, double mean = 0) {
  return {deviation * deviation, Initializer::Fan::none, Initializer::Kind::normal, mean};
}
/// Normal numbers within two standard deviations of the mean.
constexpr Initializer truncated_normal(double deviation, double mean = 0) {
  return {deviation * deviation, Initializer::Fan::none, Initializer::Kind::truncated_normal, mean};
}
/// A random matrix whose rows or columns, whichever are fewer, have the length `gain` and are at right angles. Saxe et al., "Exact
/// solutions to the nonlinear dynamics of learning in deep linear neural networks", ICLR 2014. Every rank computes the whole matrix.
constexpr Initializer orthogonal(double gain = 1) { return {gain * gain, Initializer::Fan::none, Initializer::Kind::orthogonal}; }
/// The values of a function of the program.
constexpr Initializer own_values(Initializer::Function function) { return {.kind = Initializer::Kind::function, .own = function}; }

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/initializer.hpp>
#endif
