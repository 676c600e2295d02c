#pragma once

#include <cstdint>

#include <pdp/core/requirements.hpp>

namespace pdp::cpu {

/// The vector registers that a loop is compiled for.
enum class Simd { baseline, avx2, avx512 };  // baseline: of 16 bytes, on every processor that the compiler's flags allow

/// Returns the widest registers of the processor that runs the program.
inline Simd widest_simd() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return Simd::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Simd::avx2;
#endif
  return Simd::baseline;
}

namespace detail {

// These functions take the body by value and inline all that it calls. So its captures lie in registers, and all of it is compiled for the
// registers that the attribute names, whatever the compiler's flags are.
#ifdef __x86_64__
template <class Body>
[[gnu::target("avx512f"), gnu::flatten]] void on_avx512(Body body) {
  body.template operator()<Simd::avx512>();
}
template <class Body>
[[gnu::target("avx2,fma"), gnu::flatten]] void on_avx2(Body body) {
  body.template operator()<Simd::avx2>();
}
#endif
template <class Body>
[[gnu::flatten]] void on_baseline(Body body) {
  body.template operator()<Simd::baseline>();
}

}  // namespace detail

/// Calls body.operator()<S>() once, with S = `registers`, which the processor must have. The body should capture by value.
template <class Body>
void with_simd(Simd registers, Body body) {
#ifdef __x86_64__
  if (registers == Simd::avx512) return detail::on_avx512(body);
  if (registers == Simd::avx2) return detail::on_avx2(body);
#endif
  static_cast<void>(registers);  // other processors have only the baseline
  detail::on_baseline(body);
}

/// During its lifetime, this thread treats denormals as zero. They would cost a hundred times as much as other numbers.
class FlushDenormals {
 public:
  FlushDenormals() : before_{mode()} { set_mode(before_ | flush); }
  ~FlushDenormals() { set_mode(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  using Mode = std::uint64_t;
#ifdef __x86_64__
  static constexpr Mode flush = 0x8000 | 0x40;  // flush to zero, denormals are zero
  static Mode mode() { return __builtin_ia32_stmxcsr(); }
  static void set_mode(Mode next) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(next)); }
#elif defined(__aarch64__)
  static constexpr Mode flush = 1 << 24;  // FZ: of operands and results
  static Mode mode() {
    Mode now;
    asm volatile("mrs %0, fpcr" : "=r"(now));
    return now;
  }
  static void set_mode(Mode next) { asm volatile("msr fpcr, %0" : : "r"(next) : "memory"); }
#else
  static constexpr Mode flush = 0;
  static Mode mode() { return 0; }
  static void set_mode(Mode) {}
#endif

  Mode before_;
};

}  // namespace pdp::cpu
