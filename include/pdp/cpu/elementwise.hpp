#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// Where a register of numbers comes from and goes to: a whole one, or the last numbers of a run.
template <class V>
struct WholeLanes {
  using T = typename V::Number;
  [[nodiscard]] V load(const T* from) const { return V::load(from); }
  void store(const V& lanes, T* to) const { lanes.store(to); }
};
template <class V>
struct SomeLanes {
  using T = typename V::Number;
  Index some;
  [[nodiscard]] V load(const T* from) const { return V::load(from, some); }
  void store(const V& lanes, T* to) const { lanes.store(to, some); }
};

}  // namespace detail

/// Numbers that are worth a thread: where a loop does little with each, and where it does more.
inline constexpr Index least_part = 32 * 1024, least_costly_part = 8 * 1024;

/// body.operator()<V>(i, io) for numbers begin to end - 1, as many at once as V has lanes: those from i on, which io.load(from) and
/// io.store(lanes, to) move. Each number goes through the same operations, wherever it lies.
template <class T, class Body>
void elementwise(const Cpu& cpu, Index begin, Index end, Body body) {
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    Index i = begin;
    for (; i + V::count <= end; i += V::count) body.template operator()<V>(i, detail::WholeLanes<V>{});
    if (i < end) body.template operator()<V>(i, detail::SomeLanes<V>{end - i});
  });
}

/// The same for numbers 0 to count - 1, on all threads.
template <class T, class Body>
void elementwise(const Cpu& cpu, Index count, Body body, Index least = least_part) {
  in_parts(cpu, count, least, [&](Index begin, Index end) { elementwise<T>(cpu, begin, end, body); });
}

}  // namespace pdp::cpu
