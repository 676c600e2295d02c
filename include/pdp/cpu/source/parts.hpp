#pragma once

/// Definitions for pdp/cpu/parts.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cpu/onednn/parallel.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

PDP_INLINE bool has_threads() { return onednn::shares_threads(); }

namespace detail {

PDP_INLINE void in_parts(const Cpu& cpu, Index count, Index least, void (*body)(const void* context, Index begin, Index end),
                         const void* context) {
  const Index parts = std::min<Index>(cpu.threads, count / least);
  if (parts < 2 || !has_threads()) return body(context, Index{0}, count);
  // Parts start at multiples of a register's length if they are long enough.
  const auto step = as_index(std::bit_floor(std::min<std::size_t>(64, as_size(least))));
  struct Work {
    void (*body)(const void* context, Index begin, Index end);
    const void* context;
    Index count, length;
    std::atomic<Index> next = 0;  // a thread that starts late finds less to do, or nothing
  } work{body, context, count, ((count + parts - 1) / parts + step - 1) / step * step};
  // Use all threads, however many parts there are: OpenMP ends threads that it does not need, and would have to create them again.
  onednn::parallel(
      cpu.threads,
      [](void* shared_work) {
        Work& shared = *static_cast<Work*>(shared_work);
        for (Index begin = 0; (begin = shared.next.fetch_add(shared.length, std::memory_order_relaxed)) < shared.count;)
          shared.body(shared.context, begin, std::min(begin + shared.length, shared.count));
      },
      &work);
}

}  // namespace detail

}  // namespace pdp::cpu
