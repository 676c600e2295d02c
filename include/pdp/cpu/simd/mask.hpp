#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <pdp/cpu/simd/vector.hpp>

namespace pdp::cpu {

template <std::floating_point T, Simd S>
struct Lanes;

/// The lanes for which a comparison of Lanes is true. The operators && and || evaluate both sides. Copying is not trivial, for the same
/// reason as for Lanes.
template <std::floating_point T, Simd S>
struct Mask {
  using Integers = detail::Vector<std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>, bytes_of<S>>;

  Integers vector;  // all bits of a lane are 1 if it is true, otherwise 0

  [[gnu::always_inline]] explicit Mask(const Integers& values) : vector{values} {}
  [[gnu::always_inline]] Mask(const Mask& other) : vector{other.vector} {}
  [[gnu::always_inline]] Mask& operator=(const Mask& other) {
    vector = other.vector;
    return *this;
  }

  [[gnu::always_inline]] friend Mask operator&&(const Mask& a, const Mask& b) { return Mask{a.vector & b.vector}; }
  [[gnu::always_inline]] friend Mask operator||(const Mask& a, const Mask& b) { return Mask{a.vector | b.vector}; }
  [[gnu::always_inline]] friend Mask operator!(const Mask& a) { return Mask{~a.vector}; }

  /// Returns, in each lane, `yes` if it is true and `no` otherwise. Each of them is Lanes or a number.
  template <class Yes, class No>
  [[nodiscard, gnu::always_inline]] Lanes<T, S> select(const Yes& yes, const No& no) const {
    return Lanes<T, S>{vector ? lanes(yes).vector : lanes(no).vector};
  }

 private:
  [[gnu::always_inline]] static const Lanes<T, S>& lanes(const Lanes<T, S>& same) { return same; }
  [[gnu::always_inline]] static Lanes<T, S> lanes(Number auto number) { return Lanes<T, S>::all(static_cast<T>(number)); }
};

}  // namespace pdp::cpu
