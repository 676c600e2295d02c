#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <span>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/tag.hpp>

/// The operations of pdp::Device (core/device.hpp) on memory. The memory of a CPU is host memory, so a transfer between the two is a copy
/// or does nothing.
namespace pdp::cpu {

namespace detail {

/// Throws DeviceError, with the memory of this machine.
[[noreturn]] void refuse_memory(Index elements, std::size_t element_bytes);

}  // namespace detail

/// Throws DeviceError if the system does not give so much memory.
template <class T>
[[nodiscard]] Buffer<T> allocate(const Cpu&, Index elements) {
  try {
    return Buffer<T>{elements};
  } catch (const std::bad_alloc&) {
    detail::refuse_memory(elements, sizeof(T));
  }
}

template <class T>
void zero(const Cpu&, std::span<T> values) {
  std::ranges::fill(values, T{});
}

template <class T>
void upload(const Cpu&, std::span<const T> from, T* to) {
  std::ranges::copy(from, to);
}

inline void reserve_uploads(const Cpu&, std::initializer_list<std::size_t>) {}
[[nodiscard]] inline bool takes_at_once(const Cpu&, std::initializer_list<std::size_t>) { return true; }

template <class T>
void copy(const Cpu&, std::span<const T> from, T* to) {
  if (from.data() != to) std::ranges::copy(from, to);
}

template <class T>
[[nodiscard]] std::span<const T> on_host(const Cpu&, std::span<const T> values) {
  return values;
}

/// A value as it was when read_later() was called.
template <class T>
struct Read {
  T value;

  [[nodiscard]] static bool is_there() { return true; }
  [[nodiscard]] const T& get() const { return value; }
};
template <class T>
[[nodiscard]] Read<T> read_later(const Cpu&, const T* value) {
  return {*value};
}

template <class T>
void store(const Cpu&, const T& value, T* to) {
  *to = value;
}

/// Fills `values` with uniform numbers in [-bound, bound). Value i is a function of the key and the element number elements[i].
template <std::floating_point T>
void fill_uniform(const Cpu&, random::Key key, double bound, const random::Elements& elements, std::span<T> values);

/// Calls body() each time: a CPU records nothing.
template <class Body>
void replay(const Cpu&, Cpu::Recordings&, std::span<const Index>, Body&& body) {
  body();
}

/// These call the functions of the same names in core/step_state.hpp.
void scale_loss(const Cpu&, StepNumbers* numbers, const StepHistory* history);
void apply_gradient_rule(const Cpu&, StepNumbers* numbers, StepHistory* history, const GradientRule& rule);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/memory.hpp>
#endif
