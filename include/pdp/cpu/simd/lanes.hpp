#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/simd/mask.hpp>
#include <pdp/cpu/simd/simd.hpp>
#include <pdp/cpu/simd/vector.hpp>

namespace pdp::cpu {

/// One vector register of numbers, used by optimizer rules and all loops over numbers on a CPU. It is based on the compilers' vector
/// extension, as intrinsics would tie a loop to one processor. Copying is not trivial on purpose: a call that is not inlined then passes
/// Lanes in memory. That is necessary if the function is compiled for other registers than its caller.
template <std::floating_point T, Simd S>
struct Lanes {
  static constexpr int bytes = bytes_of<S>;
  static constexpr int count = bytes / as_int(sizeof(T));
  using Number = T;
  using Vector = detail::Vector<T, bytes>;
  using Mask = cpu::Mask<T, S>;

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

  /// Return the lanes for which a comparison is true. If a or b is NaN, only a != b is true.
  [[gnu::always_inline]] friend Mask operator>(const Lanes& a, const Lanes& b) {
    if constexpr (assumes_finite) return compare(a, b, [](Integers& left, const Integers& right) { left = left > right; });
    return Mask{a.vector > b.vector};
  }
  [[gnu::always_inline]] friend Mask operator>=(const Lanes& a, const Lanes& b) {
    if constexpr (assumes_finite) return compare(a, b, [](Integers& left, const Integers& right) { left = left >= right; });
    return Mask{a.vector >= b.vector};
  }
  [[gnu::always_inline]] friend Mask operator<(const Lanes& a, const Lanes& b) { return b > a; }
  [[gnu::always_inline]] friend Mask operator<=(const Lanes& a, const Lanes& b) { return b >= a; }
  [[gnu::always_inline]] friend Mask operator==(const Lanes& a, const Lanes& b) { return a >= b && b >= a; }
  [[gnu::always_inline]] friend Mask operator!=(const Lanes& a, const Lanes& b) { return !(a == b); }
  [[gnu::always_inline]] friend Mask operator>(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) > b; }
  [[gnu::always_inline]] friend Mask operator>(const Lanes& a, cpu::Number auto b) { return a > all(static_cast<T>(b)); }
  [[gnu::always_inline]] friend Mask operator>=(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) >= b; }
  [[gnu::always_inline]] friend Mask operator>=(const Lanes& a, cpu::Number auto b) { return a >= all(static_cast<T>(b)); }
  [[gnu::always_inline]] friend Mask operator<(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) < b; }
  [[gnu::always_inline]] friend Mask operator<(const Lanes& a, cpu::Number auto b) { return a < all(static_cast<T>(b)); }
  [[gnu::always_inline]] friend Mask operator<=(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) <= b; }
  [[gnu::always_inline]] friend Mask operator<=(const Lanes& a, cpu::Number auto b) { return a <= all(static_cast<T>(b)); }
  [[gnu::always_inline]] friend Mask operator==(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) == b; }
  [[gnu::always_inline]] friend Mask operator==(const Lanes& a, cpu::Number auto b) { return a == all(static_cast<T>(b)); }
  [[gnu::always_inline]] friend Mask operator!=(cpu::Number auto a, const Lanes& b) { return all(static_cast<T>(a)) != b; }
  [[gnu::always_inline]] friend Mask operator!=(const Lanes& a, cpu::Number auto b) { return a != all(static_cast<T>(b)); }
  /// Returns, in each lane, `yes` if a > b and `no` otherwise, also if a or b is NaN.
  [[gnu::always_inline]] friend Lanes where_greater(const Lanes& a, const Lanes& b, const Lanes& yes, const Lanes& no) {
    return (a > b).select(yes, no);
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
  using Integers = typename Mask::Integers;
  using Integer = std::remove_cvref_t<decltype(Integers{}[0])>;
  /// Converts the numbers to integers of the same order. -0 becomes 0; NaN lies beyond the infinities.
  [[gnu::always_inline]] void order(Integers& ordered) const {
    Vector hidden = vector;
    asm("" : "+m"(hidden));  // so that the compiler infers nothing from the type of the numbers
    Integers bits;
    std::memcpy(&bits, &hidden, sizeof bits);
    const Integers sign = bits >> (8 * sizeof(T) - 1);
    ordered = ((bits & std::numeric_limits<Integer>::max()) ^ sign) - sign;
  }
  /// Returns the lanes for which operation(left, right) sets `left`, the integers of a. False if a or b is NaN.
  template <class Operation>
  [[gnu::always_inline]] static Mask compare(const Lanes& a, const Lanes& b, Operation operation) {
    constexpr auto infinite = static_cast<Integer>(pdp::detail::infinite_bits<T>);
    Integers left, right;
    a.order(left);
    b.order(right);
    const Integers numbers = (left <= infinite) & (right >= -infinite);
    operation(left, right);
    return Mask{left & numbers};
  }
  struct [[gnu::packed, gnu::may_alias]] Loose {
    Vector vector;
  };
};

static_assert(sizeof(Lanes<float, Simd::avx512>) == 64 && Lanes<double, Simd::avx2>::count == 4);

}  // namespace pdp::cpu
