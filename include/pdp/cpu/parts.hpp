#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>

#include <pdp/core/cast.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/onednn/parallel.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Whether a rank's threads are of use: they are where the program is linked with a oneDNN that has OpenMP.
inline bool has_threads() { return onednn::shares_threads(); }

/// Calls body(begin, end) for parts of 0 to count - 1 that together are all of it, on the threads that `cpu` may use. Where there are
/// several, all but the last have `least` of them or more (at least 1), since a thread that waits takes microseconds to begin. The body
/// must not throw, and must not mind where the parts are cut.
template <class Body>
void in_parts(const Cpu& cpu, Index count, Index least, const Body& body) {
  const Index parts = std::min<Index>(cpu.threads, count / least);
  if (parts < 2 || !has_threads()) return body(Index{0}, count);
  // Parts begin where registers do, if they are long enough.
  const auto step = as_index(std::bit_floor(std::min<std::size_t>(64, as_size(least))));
  struct Work {
    const Body& body;
    Index count, length;
    std::atomic<Index> next = 0;  // a thread that comes late finds less to do, or nothing
  } work{body, count, ((count + parts - 1) / parts + step - 1) / step * step};
  // All threads, whatever the parts: OpenMP ends those that it is not asked for, and has to make them anew.
  onednn::parallel(
      cpu.threads,
      [](void* context) {
        Work& shared = *static_cast<Work*>(context);
        for (Index begin; (begin = shared.next.fetch_add(shared.length, std::memory_order_relaxed)) < shared.count;)
          shared.body(begin, std::min(begin + shared.length, shared.count));
      },
      &work);
}

}  // namespace pdp::cpu
