#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/cpu/simd/simd.hpp>

namespace pdp::cpu {

/// A scalar, which stands for a vector with that number in each lane.
template <class N>
concept Number = std::is_arithmetic_v<N>;

/// The size of a vector register.
template <Simd S>
constexpr int bytes_of = S == Simd::avx512 ? 64
                         : S == Simd::avx2 ? 32
                                           : 16;

namespace detail {

template <class T, int Bytes>
struct VectorOf {
  using Type [[gnu::vector_size(Bytes)]] = T;
};
template <class T, int Bytes>
using Vector = typename VectorOf<T, Bytes>::Type;

#if !__has_builtin(__builtin_elementwise_sqrt)
/// Computes the square roots of a register's numbers in place, by instructions of the processor. Compilers do not vectorise std::sqrt, as
/// it sets `errno`. The register is passed in memory, since a vector passed by value must not be wider than the compiler's flags allow.
template <class T, Simd S>
struct SquareRoots {
  static void take(Vector<T, bytes_of<S>>& all) {
    for (int i = 0; i < bytes_of<S> / as_int(sizeof(T)); ++i) all[i] = std::sqrt(all[i]);
  }
};
#ifdef __x86_64__
template <class T>
struct SquareRoots<T, Simd::avx512> {
  [[gnu::target("avx512f")]] static void take(Vector<T, 64>& all) {
    constexpr int current_rounding = 4;
#ifdef __clang__
    if constexpr (std::same_as<T, float>)
      all = __builtin_ia32_sqrtps512(all, current_rounding);
    else
      all = __builtin_ia32_sqrtpd512(all, current_rounding);
#else
    if constexpr (std::same_as<T, float>)
      all = __builtin_ia32_sqrtps512_mask(all, all, -1, current_rounding);
    else
      all = __builtin_ia32_sqrtpd512_mask(all, all, -1, current_rounding);
#endif
  }
};
template <class T>
struct SquareRoots<T, Simd::avx2> {
  [[gnu::target("avx2,fma")]] static void take(Vector<T, 32>& all) {
    if constexpr (std::same_as<T, float>)
      all = __builtin_ia32_sqrtps256(all);
    else
      all = __builtin_ia32_sqrtpd256(all);
  }
};
template <class T>
struct SquareRoots<T, Simd::baseline> {
  static void take(Vector<T, 16>& all) {
    if constexpr (std::same_as<T, float>)
      all = __builtin_ia32_sqrtps(all);
    else
      all = __builtin_ia32_sqrtpd(all);
  }
};
#endif
#endif

}  // namespace detail

static_assert(sizeof(detail::Vector<float, bytes_of<Simd::avx512>>) == 64);

}  // namespace pdp::cpu
