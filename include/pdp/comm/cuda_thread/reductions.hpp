#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/comm/operation.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/cuda/detail/reduce.hpp>

namespace pdp::comm::cuda_thread {

namespace detail {

template <class T>
cuda::Reduce* of_numbers(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::average:
      return &cuda::reduce<T, Sum>;
    case Reduction::product:
      return &cuda::reduce<T, Product>;
    case Reduction::min:
      return &cuda::reduce<T, Min>;
    case Reduction::max:
      return &cuda::reduce<T, Max>;
    default:
      return nullptr;
  }
}
template <class T>
cuda::Reduce* of_whole_numbers(Reduction reduction) {
  if (reduction == Reduction::bit_and) return &cuda::reduce<T, BitAnd>;
  if (reduction == Reduction::bit_or) return &cuda::reduce<T, BitOr>;
  return of_numbers<T>(reduction);
}

}  // namespace detail

/// Returns the kernel of a reduction, or null if there is none for this type.
inline cuda::Reduce* kernel_of(DType type, Reduction reduction) {
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

/// Enqueues a reduction: combines `elements` elements of all sources, in their order, and writes the result to each destination. The type
/// and reduction must have a kernel (see kernel_of).
inline void reduce(DType type, Reduction reduction, int device, cuda::Stream stream, std::span<const std::byte* const> sources,
                   std::span<std::byte* const> destinations, std::size_t elements) {
  const int divisor = reduction == Reduction::average ? as_int(sources.size()) : 1;
  kernel_of(type, reduction)(device, stream, sources, destinations, as_index(elements), divisor);
}

}  // namespace pdp::comm::cuda_thread
