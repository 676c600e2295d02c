#pragma once

#include <cstddef>
#include <span>

#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cuda/detail/reduce.hpp>
#include <pdp/cuda/kernels/launch.cuh>

namespace pdp::cuda {

namespace kernel {

/// Pointers to the values of each rank, as a kernel argument.
template <class T>
struct Places {
  T* at[most_sources];
  int count;
};

/// Combines the sources element by element. Combines 16-bit numbers as floats and rounds after each operation, as the host does.
template <class Operation, class T>
__global__ void __launch_bounds__(block_threads)
    reduce(const __grid_constant__ Places<const T> sources, const __grid_constant__ Places<T> destinations, Index count, int divisor) {
  for (Index i = Index{blockIdx.x} * block_threads + threadIdx.x; i < count; i += Index{gridDim.x} * block_threads) {
    T value = sources.at[0][i];
    for (int other = 1; other < sources.count; ++other)
      value = static_cast<T>(Operation::combine(Accumulated<T>{value}, Accumulated<T>{sources.at[other][i]}));
    if (divisor > 1) value = static_cast<T>(Accumulated<T>{value} / static_cast<Accumulated<T>>(divisor));
    for (int to = 0; to < destinations.count; ++to) destinations.at[to][i] = value;
  }
}

}  // namespace kernel

template <class T, class Operation>
void reduce(int device, Stream stream, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations, Index count,
            int divisor) {
  if (sources.empty() || sources.size() > most_sources || destinations.size() > most_sources)
    throw ConfigError{text("a reduction on a GPU needs 1 to ", most_sources, " sources and at most ", most_sources, " destinations; found ",
                           sources.size(), " and ", destinations.size())};
  if (count == 0) return;
  kernel::Places<const Stored<T>> from{};
  for (const std::byte* const each : sources) from.at[from.count++] = reinterpret_cast<const Stored<T>*>(each);
  kernel::Places<Stored<T>> to{};
  for (std::byte* const each : destinations) to.at[to.count++] = reinterpret_cast<Stored<T>*>(each);
  constexpr unsigned most_blocks = 4 * 1024;
  launch_on(device, stream, kernel::reduce<Operation, Stored<T>>, blocks_for(count, block_threads, most_blocks), block_threads, from, to,
            count, divisor);
}

}  // namespace pdp::cuda
