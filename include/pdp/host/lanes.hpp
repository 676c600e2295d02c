#pragma once

#include <cmath>
#include <concepts>
#include <cstring>
#include <type_traits>

#include <pdp/core/view.hpp>
#include <pdp/host/simd.hpp>

namespace pdp::host {

/// A plain number, which stands for as many lanes of it.
template <class N>
concept Number = std::is_arithmetic_v<N>;

template <Simd S>
constexpr int bytes_of = S == Simd::avx512 ? 64
                         : S == Simd::avx2 ? 32
                                           : 16;

namespace detail {

template <class T, int Bytes>
struct VectorOf {
  typedef T Type [[gnu::vector_size(Bytes)]];
};
template <class T, int Bytes>
using Vector = typename VectorOf<T, Bytes>::Type;

/// Of the numbers of one register, in place. By instructions of the processor: as std::sqrt sets `errno`, compilers make no vectors of it.
/// In memory, since a vector that is passed by value must not be wider than the flags of the compiler allow.
template <class T, Simd S>
struct SquareRoots {
  static void take(T* numbers) {
    for (int i = 0; i < bytes_of<S> / static_cast<int>(sizeof(T)); ++i) numbers[i] = std::sqrt(numbers[i]);
  }
};
#ifdef __x86_64__
template <>
struct SquareRoots<float, Simd::avx512> {
  [[gnu::target("avx512f")]] static void take(float* numbers) {
    auto& all = *reinterpret_cast<Vector<float, 64>*>(numbers);
    constexpr int current_rounding = 4;
#ifdef __clang__
    all = __builtin_ia32_sqrtps512(all, current_rounding);
#else
    all = __builtin_ia32_sqrtps512_mask(all, all, -1, current_rounding);
#endif
  }
};
template <>
struct SquareRoots<float, Simd::avx2> {
  [[gnu::target("avx2,fma")]] static void take(float* numbers) {
    auto& all = *reinterpret_cast<Vector<float, 32>*>(numbers);
    all = __builtin_ia32_sqrtps256(all);
  }
};
template <>
struct SquareRoots<float, Simd::baseline> {
  static void take(float* numbers) {
    auto& all = *reinterpret_cast<Vector<float, 16>*>(numbers);
    all = __builtin_ia32_sqrtps(all);
  }
};
#endif

}  // namespace detail

/// One vector register of numbers: what optimizer rules and all loops over numbers are compiled with on a CPU. In the compilers' own vector
/// extension, as intrinsics would tie a loop to one processor.
template <std::floating_point T, Simd S>
struct Lanes {
  static constexpr int bytes = bytes_of<S>;
  static constexpr int count = bytes / static_cast<int>(sizeof(T));
  using Number = T;
  using Vector = detail::Vector<T, bytes>;

  Vector vector;

  /// Calls function(lane) for the number in each lane.
  template <class F>
  static Lanes generate(const F& function) {
    Lanes lanes;
    for (int i = 0; i < count; ++i) lanes.vector[i] = function(i);
    return lanes;
  }
  static Lanes all(T value) { return {Vector{} + value}; }
  static Lanes load(const T* from) { return {reinterpret_cast<const Loose*>(from)->vector}; }
  /// The first `some` lanes from memory, zero in the others.
  static Lanes load(const T* from, Index some) {
    alignas(bytes) T lanes[count]{};
    for (Index i = 0; i < some; ++i) lanes[i] = from[i];
    return load(lanes);
  }
  void store(T* to) const { reinterpret_cast<Loose*>(to)->vector = vector; }
  void store(T* to, Index some) const {
    alignas(bytes) T lanes[count];
    store(lanes);
    for (Index i = 0; i < some; ++i) to[i] = lanes[i];
  }

  friend Lanes operator+(const Lanes& a, const Lanes& b) { return {a.vector + b.vector}; }
  friend Lanes operator-(const Lanes& a, const Lanes& b) { return {a.vector - b.vector}; }
  friend Lanes operator*(const Lanes& a, const Lanes& b) { return {a.vector * b.vector}; }
  friend Lanes operator/(const Lanes& a, const Lanes& b) { return {a.vector / b.vector}; }
  friend Lanes operator-(const Lanes& a) { return {-a.vector}; }
  friend Lanes operator+(host::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) + b; }
  friend Lanes operator-(host::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) - b; }
  friend Lanes operator*(host::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) * b; }
  friend Lanes operator/(host::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) / b; }
  friend Lanes operator+(const Lanes& a, host::Number auto b) { return a + all(static_cast<T>(b)); }
  friend Lanes operator-(const Lanes& a, host::Number auto b) { return a - all(static_cast<T>(b)); }
  friend Lanes operator*(const Lanes& a, host::Number auto b) { return a * all(static_cast<T>(b)); }
  friend Lanes operator/(const Lanes& a, host::Number auto b) { return a / all(static_cast<T>(b)); }

  /// In each lane where a > b the number of `yes`, else that of `no`; so also where one of them is no number.
  friend Lanes where_greater(const Lanes& a, const Lanes& b, const Lanes& yes, const Lanes& no) {
    return {a.vector > b.vector ? yes.vector : no.vector};
  }
  friend Lanes sqrt(const Lanes& a) {
    Lanes root = a;
    detail::SquareRoots<T, S>::take(reinterpret_cast<T*>(&root.vector));
    return root;
  }
  /// The sum over the lanes, always in the same order.
  [[nodiscard]] T sum() const {
    T total = vector[0];
    for (int i = 1; i < count; ++i) total += vector[i];
    return total;
  }
  [[nodiscard]] T largest() const {
    T best = vector[0];
    for (int i = 1; i < count; ++i) best = vector[i] > best ? vector[i] : best;
    return best;
  }

 private:
  struct [[gnu::packed, gnu::may_alias]] Loose {
    Vector vector;
  };
};

}  // namespace pdp::host
