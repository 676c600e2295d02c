#pragma once

#include <Eigen/Core>
#include <concepts>
#include <type_traits>

namespace pdp::host {

/// A plain number, which stands for as many lanes of it.
template <class N>
concept Number = std::is_arithmetic_v<N>;

/// A few numbers that are worked on together: the vector type that optimizer rules are compiled with on a CPU. Loops of a fixed count,
/// which compilers turn into vector instructions; the square root goes through Eigen, as `errno` keeps compilers from doing the same for
/// it.
template <std::floating_point T, int N>
struct Lanes {
  T lane[N];

  static Lanes all(T value) {
    Lanes lanes;
    for (T& each : lanes.lane) each = value;
    return lanes;
  }

  friend Lanes operator+(Lanes a, const Lanes& b) {
    for (int i = 0; i < N; ++i) a.lane[i] += b.lane[i];
    return a;
  }
  friend Lanes operator-(Lanes a, const Lanes& b) {
    for (int i = 0; i < N; ++i) a.lane[i] -= b.lane[i];
    return a;
  }
  friend Lanes operator*(Lanes a, const Lanes& b) {
    for (int i = 0; i < N; ++i) a.lane[i] *= b.lane[i];
    return a;
  }
  friend Lanes operator/(Lanes a, const Lanes& b) {
    for (int i = 0; i < N; ++i) a.lane[i] /= b.lane[i];
    return a;
  }
  friend Lanes operator-(const Lanes& a) { return all(T{}) - a; }
  friend Lanes operator+(Number auto a, const Lanes& b) { return all(static_cast<T>(a)) + b; }
  friend Lanes operator-(Number auto a, const Lanes& b) { return all(static_cast<T>(a)) - b; }
  friend Lanes operator*(Number auto a, const Lanes& b) { return all(static_cast<T>(a)) * b; }
  friend Lanes operator/(Number auto a, const Lanes& b) { return all(static_cast<T>(a)) / b; }
  friend Lanes operator+(const Lanes& a, Number auto b) { return a + all(static_cast<T>(b)); }
  friend Lanes operator-(const Lanes& a, Number auto b) { return a - all(static_cast<T>(b)); }
  friend Lanes operator*(const Lanes& a, Number auto b) { return a * all(static_cast<T>(b)); }
  friend Lanes operator/(const Lanes& a, Number auto b) { return a / all(static_cast<T>(b)); }
  friend Lanes sqrt(Lanes a) {
    Eigen::Map<Eigen::Array<T, N, 1>> values{a.lane};
    values = values.sqrt();
    return a;
  }
};

}  // namespace pdp::host
