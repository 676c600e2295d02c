#pragma once

#include <concepts>

#include <pdp/core/dtype.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// The element types in which a model is trained: `Compute` for the layers' arithmetic, `Master` for the optimizer's parameters, `Reduce`
/// for the reduction of gradients.
template <class Compute, class Master = Compute, class Reduce = Master>
struct Precision {
  using compute = Compute;
  using master = Master;
  using reduce = Reduce;
};

using Float32 = Precision<float>;
using Float64 = Precision<double>;
/// Layers compute in bfloat16, on rounded copies of parameters that are kept as floats. Gradients of parameters are floats. Micikevicius et
/// al., "Mixed precision training", ICLR 2018.
using MixedBfloat16 = Precision<BFloat16, float>;
/// As MixedBfloat16, but in float16: 11 bits of precision instead of 8, but a small range, so losses are scaled (see LossScaling).
using MixedFloat16 = Precision<Float16, float>;
/// Gradients are rounded to bfloat16 before the reduction over ranks and added in bfloat16: half the bytes, 8 bits of precision.
using Bfloat16Gradients = Precision<float, float, BFloat16>;

/// A precision that the engine supports: one floating-point type throughout, or float masters with layers that compute in 16 bits,
/// gradients reduced in bfloat16, or both.
template <class P>
concept SupportedPrecision = Element<typename P::compute> && std::floating_point<typename P::master> &&
    std::same_as<typename P::master, Accumulated<typename P::compute>> &&
    (std::same_as<typename P::reduce, typename P::master> ||
     (std::same_as<typename P::master, float> && std::same_as<typename P::reduce, BFloat16>));

static_assert(SupportedPrecision<Float32> && SupportedPrecision<Float64> && SupportedPrecision<Bfloat16Gradients> &&
              SupportedPrecision<MixedBfloat16> && SupportedPrecision<MixedFloat16>);
static_assert(!SupportedPrecision<Precision<float, double>>);

/// The size of one element of each type, in bytes.
struct ElementBytes {
  Index compute = 0, master = 0, reduce = 0;
};
template <SupportedPrecision P>
constexpr ElementBytes element_bytes{sizeof(typename P::compute), sizeof(typename P::master), sizeof(typename P::reduce)};

}  // namespace pdp
