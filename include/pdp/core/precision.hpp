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

/// A policy that the engine can carry out: one floating-point type throughout.
template <class P>
concept UniformPrecision = std::floating_point<typename P::compute> && Element<typename P::compute> &&
    std::same_as<typename P::compute, typename P::master> && std::same_as<typename P::compute, typename P::reduce>;

static_assert(UniformPrecision<Float32> && UniformPrecision<Float64> && !UniformPrecision<Precision<float, double>>);

}  // namespace pdp
