#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <pdp/core/shape.hpp>
#include <pdp/cuda/handle.hpp>

namespace pdp::cuda {

/// Combines `count` elements of type T of several sources, in their order, and writes the result to every destination: on a stream of the
/// GPU `device`, which reaches all of them. Operation::combine(left, right) is constexpr. The result is divided by `divisor`, unless that
/// is 1. A destination may be a source. At most `most_sources` of either.
///
/// The kernels are compiled by nvcc: those of comm/operation.hpp come with the CMake target pdp::cuda. The places are bytes, as nvcc does
/// not compile a std::span of Float16*.
using Reduce = void(int device, Stream stream, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
                    Index count, int divisor);
template <class T, class Operation>
void reduce(int device, Stream stream, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations, Index count,
            int divisor);

inline constexpr std::size_t most_sources = 64;

/// An explicit instantiation, beside kernels/reduce.cuh, compiles the kernels of these operations. They are named in a function because
/// nvcc compiles no kernel that only a constant names.
template <class T, class... Operations>
struct Reductions {
  static std::array<Reduce*, sizeof...(Operations)> all() { return {&reduce<T, Operations>...}; }
};

}  // namespace pdp::cuda
