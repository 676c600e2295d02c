#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>

#include <pdp/core/view.hpp>
#include <pdp/host/onednn/parallel.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

/// Calls body(begin, end) for parts of 0 to count - 1 that together are all of it, on the threads that `cpu` may use. Where there are
/// several, each has some `least` of them or more (at least 1), since it costs microseconds to wake a thread. The body must not throw, and
/// must not mind where the parts are cut.
template <class Body>
void in_parts(const Cpu& cpu, Index count, Index least, const Body& body) {
  const Index parts = std::min<Index>(cpu.threads, count / least);
  if (parts < 2 || onednn::parallel == nullptr) return body(Index{0}, count);
  const auto step = static_cast<Index>(std::bit_floor(std::min<std::size_t>(64, static_cast<std::size_t>(least))));  // whole cache lines
  struct Work {
    const Body& body;
    Index count, length;
    std::atomic<Index> next = 0;  // a thread that comes late finds less to do, or nothing
  } work{body, count, ((count + parts - 1) / parts + step - 1) / step * step};
  const auto take = [](void* context) {
    Work& shared = *static_cast<Work*>(context);
    for (Index begin; (begin = shared.next.fetch_add(shared.length, std::memory_order_relaxed)) < shared.count;)
      shared.body(begin, std::min(begin + shared.length, shared.count));
  };
  if (!onednn::parallel(static_cast<int>(parts), take, &work)) body(Index{0}, count);
}

}  // namespace pdp::host
