#pragma once

#include <concepts>

#include <pdp/core/dtype.hpp>

namespace pdp {

/// In which element types a model is trained: what layers compute in, what the optimizer keeps, and what gradients are reduced in.
template <class Compute, class Master = Compute, class Reduce = Master>
struct Precision {
  using compute = Compute;
  using master = Master;
  using reduce = Reduce;
};

using Float32 = Precision<float>;
using Float64 = Precision<double>;
/// Gradients are rounded to bfloat16 before they are added up over ranks, and added in it: half the bytes, 8 bits of precision.
using Bfloat16Gradients = Precision<float, float, BFloat16>;

/// A policy that the engine can carry out: one floating-point type throughout, or gradients that travel rounded.
template <class P>
concept SupportedPrecision = std::floating_point<typename P::compute> && Element<typename P::compute> &&
    std::same_as<typename P::compute, typename P::master> &&
    (std::same_as<typename P::compute, typename P::reduce> ||
     (std::same_as<typename P::compute, float> && std::same_as<typename P::reduce, BFloat16>));

static_assert(SupportedPrecision<Float32> && SupportedPrecision<Float64> && SupportedPrecision<Bfloat16Gradients>);
static_assert(!SupportedPrecision<Precision<float, double>>);

}  // namespace pdp
