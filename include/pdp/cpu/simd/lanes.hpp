#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
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

/// One vector register of numbers, used by optimizer rules and all loops over numbers on a CPU. It is based on the compilers' vector
/// extension, as intrinsics would tie a loop to one processor. Copying is not trivial on purpose: a call that is not inlined then passes
/// Lanes in memory. That is necessary if the function is compiled for other registers than its caller.
template <std::floating_point T, Simd S>
struct Lanes {
  static constexpr int bytes = bytes_of<S>;
  static constexpr int count = bytes / as_int(sizeof(T));
  using Number = T;
  using Vector = detail::Vector<T, bytes>;

  Vector vector;

  [[gnu::always_inline]] Lanes() : vector{} {}
  [[gnu::always_inline]] explicit Lanes(const Vector& values) : vector{values} {}
  [[gnu::always_inline]] Lanes(const Lanes& other) : vector{other.vector} {}
  [[gnu::always_inline]] Lanes& operator=(const Lanes& other) {
    vector = other.vector;
    return *this;
  }

  /// Returns Lanes with function(lane) in each lane.
  template <class F>
  static Lanes generate(const F& function) {
    Lanes lanes;
    for (int i = 0; i < count; ++i) lanes.vector[i] = function(i);
    return lanes;
  }
  [[gnu::always_inline]] static Lanes all(T value) { return Lanes{Vector{} + value}; }
  [[gnu::always_inline]] static Lanes load(const T* from) {
    const Vector values = reinterpret_cast<const Loose*>(from)->vector;
    return Lanes{values};
  }
  /// Loads the first `some` lanes from memory; the others are zero.
  static Lanes load(const T* from, Index some) {
    alignas(bytes) T lanes[std::size_t{count}]{};
    for (Index i = 0; i < some; ++i) lanes[i] = from[i];
    return load(lanes);
  }
  [[gnu::always_inline]] void store(T* to) const { reinterpret_cast<Loose*>(to)->vector = vector; }
  void store(T* to, Index some) const {
    alignas(bytes) T lanes[std::size_t{count}];
    store(lanes);
    for (Index i = 0; i < some; ++i) to[i] = lanes[i];
  }

  [[gnu::always_inline]] friend Lanes operator+(const Lanes& a, const Lanes& b) { return Lanes{a.vector + b.vector}; }
  [[gnu::always_inline]] friend Lanes operator-(const Lanes& a, const Lanes& b) { return Lanes{a.vector - b.vector}; }
  [[gnu::always_inline]] friend Lanes operator*(const Lanes& a, const Lanes& b) { return Lanes{a.vector * b.vector}; }
  [[gnu::always_inline]] friend Lanes operator/(const Lanes& a, const Lanes& b) { return Lanes{a.vector / b.vector}; }
  [[gnu::always_inline]] friend Lanes operator-(const Lanes& a) { return Lanes{-a.vector}; }
  [[gnu::always_inline]] friend Lanes operator+(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) + b; }
  [[gnu::always_inline]] friend Lanes operator-(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) - b; }
  [[gnu::always_inline]] friend Lanes operator*(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) * b; }
  [[gnu::always_inline]] friend Lanes operator/(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) / b; }
  [[gnu::always_inline]] friend Lanes operator+(const Lanes& a, cpu::Number auto b) { return a + all(static_cast<T>(b)); }
  [[gnu::always_inline]] friend Lanes operator-(const Lanes& a, cpu::Number auto b) { return a - all(static_cast<T>(b)); }
  [[gnu::always_inline]] friend Lanes operator*(const Lanes& a, cpu::Number auto b) { return a * all(static_cast<T>(b)); }
  [[gnu::always_inline]] friend Lanes operator/(const Lanes& a, cpu::Number auto b) { return a / all(static_cast<T>(b)); }

  /// Returns, in each lane, `yes` if a > b and `no` otherwise, also if a or b is NaN.
  [[gnu::always_inline]] friend Lanes where_greater(const Lanes& a, const Lanes& b, const Lanes& yes, const Lanes& no) {
    if constexpr (assumes_finite) {
      Integers greater;
      compare(a, b, greater);
      return Lanes{greater ? yes.vector : no.vector};
    }
    return Lanes{a.vector > b.vector ? yes.vector : no.vector};
  }
  friend Lanes sqrt(const Lanes& a) {
#if __has_builtin(__builtin_elementwise_sqrt)
    return Lanes{__builtin_elementwise_sqrt(a.vector)};
#else
    Lanes root = a;
    detail::SquareRoots<T, S>::take(root.vector);
    return root;
#endif
  }
  /// Returns the sum over the lanes, always added in the same order.
  [[nodiscard]] T sum() const {
    T total = vector[0];
    for (int i = 1; i < count; ++i) total += vector[i];
    return total;
  }
  [[nodiscard]] T largest() const {
    T best = vector[0];
    for (int i = 1; i < count; ++i) best = pdp::is_greater(vector[i], best) ? vector[i] : best;
    return best;
  }

 private:
  using Integer = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  using Integers = detail::Vector<Integer, bytes>;
  /// Converts the numbers to integers of the same order. -0 becomes 0; NaN lies beyond the infinities.
  [[gnu::always_inline]] void order(Integers& ordered) const {
    Vector hidden = vector;
    asm("" : "+m"(hidden));  // so that the compiler infers nothing from the type of the numbers
    Integers bits;
    std::memcpy(&bits, &hidden, sizeof bits);
    const Integers sign = bits >> (8 * sizeof(T) - 1);
    ordered = ((bits & std::numeric_limits<Integer>::max()) ^ sign) - sign;
  }
  /// Sets `greater` in each lane with a > b, by comparing bits. Not set if a or b is NaN.
  [[gnu::always_inline]] static void compare(const Lanes& a, const Lanes& b, Integers& greater) {
    constexpr auto infinite = static_cast<Integer>(pdp::detail::infinite_bits<T>);
    Integers left, right;
    a.order(left);
    b.order(right);
    greater = (left > right) & (left <= infinite) & (right >= -infinite);
  }
  struct [[gnu::packed, gnu::may_alias]] Loose {
    Vector vector;
  };
};

static_assert(sizeof(Lanes<float, Simd::avx512>) == 64 && Lanes<double, Simd::avx2>::count == 4);

}  // namespace pdp::cpu
