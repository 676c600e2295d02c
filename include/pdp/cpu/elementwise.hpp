#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/simd/widen.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// These load and store one register of numbers: WholeLanes all lanes, SomeLanes the first `some` lanes, for the last numbers of a loop.
/// Numbers of 16 bits in memory are floats in a register.
template <class V>
struct WholeLanes {
  using T = typename V::Number;
  [[nodiscard]] V load(const T* from) const { return V::load(from); }
  void store(const V& lanes, T* to) const { lanes.store(to); }
  [[nodiscard]] V load(const BFloat16* from) const {
    V lanes;
    widen(from, lanes);
    return lanes;
  }
  void store(const V& lanes, BFloat16* to) const { narrow(lanes, to); }
};
template <class V>
struct SomeLanes {
  using T = typename V::Number;
  Index some;
  [[nodiscard]] V load(const T* from) const { return V::load(from, some); }
  void store(const V& lanes, T* to) const { lanes.store(to, some); }
  [[nodiscard]] V load(const BFloat16* from) const {
    V lanes;
    widen(from, lanes, some);
    return lanes;
  }
  void store(const V& lanes, BFloat16* to) const { narrow(lanes, to, some); }
};

}  // namespace detail

/// The smallest numbers of elements that are worth a thread, in a loop with cheap and in one with costly operations.
inline constexpr Index least_part = 32 * 1024, least_costly_part = 8 * 1024;

/// Applies the body to elements begin to end - 1, as many at a time as a register has lanes. Each call body.operator()<V>(i, io) is for
/// V::count elements from element i on, the last call possibly for fewer. The body reads them by io.load(from) and writes them by
/// io.store(lanes, to). Each element goes through the same operations, regardless of its position. V has floats if T has 16 bits.
template <class T, class Body>
void elementwise(const Cpu& cpu, Index begin, Index end, Body body) {
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<Accumulated<T>, S>;
    Index i = begin;
    for (; i + V::count <= end; i += V::count) body.template operator()<V>(i, detail::WholeLanes<V>{});
    if (i < end) body.template operator()<V>(i, detail::SomeLanes<V>{end - i});
  });
}

/// Does the same for elements 0 to count - 1, on all threads, in parts of at least `least` elements.
template <class T, class Body>
void elementwise(const Cpu& cpu, Index count, Body body, Index least = least_part) {
  in_parts(cpu, count, least, [&](Index begin, Index end) { elementwise<T>(cpu, begin, end, body); });
}

}  // namespace pdp::cpu
