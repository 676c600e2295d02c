#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <pdp/core/shape.hpp>
#include <pdp/cuda/handle.hpp>

namespace pdp::cuda {

/// Combines `count` elements of type T of several sources, in their order, and writes the result to every destination. Runs on a stream of
/// the GPU `device`, which must be able to access all of this memory. Operation::combine(left, right) must be constexpr. Divides the result
/// by `divisor` unless that is 1. A destination may be a source. Throws ConfigError if there are no sources, or more than `most_sources`
/// sources or destinations.
///
/// nvcc compiles the kernels; those of comm/operation.hpp come with the CMake target pdp::cuda. Pointers are to bytes, as nvcc does not
/// compile a std::span of Float16*.
using Reduce = void(int device, Stream stream, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
                    Index count, int divisor);
template <class T, class Operation>
void reduce(int device, Stream stream, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations, Index count,
            int divisor);

inline constexpr std::size_t most_sources = 64;

/// The reductions with these operations. An explicit instantiation, in a source that includes kernels/reduce.cuh, compiles their kernels.
/// all() is a function because nvcc compiles no kernel that only a constant names.
template <class T, class... Operations>
struct Reductions {
  static std::array<Reduce*, sizeof...(Operations)> all() { return {&reduce<T, Operations>...}; }
};

}  // namespace pdp::cuda
