#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/comm/operation.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/cuda/detail/reduce.hpp>

namespace pdp::comm::cuda_thread {

namespace detail {

/// Combines values of several ranks, in their order, and writes the result to all destinations.
using Reduce = void (*)(int device, cuda::Stream stream, std::span<const std::byte* const> sources,
                        std::span<std::byte* const> destinations, std::size_t elements, int divisor);

template <class T, class Operation>
void reduce(int device, cuda::Stream stream, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
            std::size_t elements, int divisor) {
  std::array<const T*, cuda::most_sources> from{};
  std::array<T*, cuda::most_sources> to{};
  for (std::size_t i = 0; i < sources.size(); ++i) from[i] = reinterpret_cast<const T*>(sources[i]);
  for (std::size_t i = 0; i < destinations.size(); ++i) to[i] = reinterpret_cast<T*>(destinations[i]);
  cuda::reduce<T, Operation>(device, stream, std::span<const T* const>{from}.first(sources.size()),
                             std::span<T* const>{to}.first(destinations.size()), as_index(elements), divisor);
}

template <class T>
Reduce of_numbers(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::average:
      return &reduce<T, Sum>;
    case Reduction::product:
      return &reduce<T, Product>;
    case Reduction::min:
      return &reduce<T, Min>;
    case Reduction::max:
      return &reduce<T, Max>;
    default:
      return nullptr;
  }
}
template <class T>
Reduce of_whole_numbers(Reduction reduction) {
  if (reduction == Reduction::bit_and) return &reduce<T, BitAnd>;
  if (reduction == Reduction::bit_or) return &reduce<T, BitOr>;
  return of_numbers<T>(reduction);
}

}  // namespace detail

/// Null where there is no kernel for it.
inline detail::Reduce kernel_of(DType type, Reduction reduction) {
  switch (type) {
    case DType::byte:
      return detail::of_whole_numbers<unsigned char>(reduction);
    case DType::int8:
      return detail::of_whole_numbers<std::int8_t>(reduction);
    case DType::int32:
      return detail::of_whole_numbers<std::int32_t>(reduction);
    case DType::int64:
      return detail::of_whole_numbers<std::int64_t>(reduction);
    case DType::float16:
      return detail::of_numbers<Float16>(reduction);
    case DType::bfloat16:
      return detail::of_numbers<BFloat16>(reduction);
    case DType::float32:
      return detail::of_numbers<float>(reduction);
    case DType::float64:
      return detail::of_numbers<double>(reduction);
  }
  return nullptr;
}

/// Of a call that was checked: there is a kernel for it.
inline void reduce(DType type, Reduction reduction, int device, cuda::Stream stream, std::span<const std::byte* const> sources,
                   std::span<std::byte* const> destinations, std::size_t elements) {
  const int divisor = reduction == Reduction::average ? as_int(sources.size()) : 1;
  kernel_of(type, reduction)(device, stream, sources, destinations, elements, divisor);
}

}  // namespace pdp::comm::cuda_thread
