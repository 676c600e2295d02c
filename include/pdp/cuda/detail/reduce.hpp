#pragma once

#include <cstddef>
#include <span>

#include <pdp/core/shape.hpp>
#include <pdp/cuda/handle.hpp>

namespace pdp::cuda {

/// Combines as many elements of several sources, in their order, and writes what comes of it to every destination: on a stream of the GPU
/// `device`, which reaches all of them. Operation::combine(left, right) is constexpr. What is combined is divided by `divisor`, unless that
/// is 1. A destination may be a source. At most `most_sources` of either.
///
/// The kernels are compiled by nvcc: those of comm/operation.hpp come with the CMake target pdp::cuda.
template <class T, class Operation>
void reduce(int device, Stream stream, std::span<const T* const> sources, std::span<T* const> destinations, Index count, int divisor);

inline constexpr std::size_t most_sources = 64;

template <class T>
using Reduce = void(int, Stream, std::span<const T* const>, std::span<T* const>, Index, int);

/// An explicit instantiation, beside kernels/reduce.cuh, compiles the kernels of these operations.
template <class T, class... Operations>
struct Reductions {
  static constexpr Reduce<T>* all[]{&reduce<T, Operations>...};
};

}  // namespace pdp::cuda
