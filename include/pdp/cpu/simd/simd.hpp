#pragma once

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
#ifdef __x86_64__
  FlushDenormals() : before_{__builtin_ia32_stmxcsr()} {
    constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x40;
    __builtin_ia32_ldmxcsr(before_ | flush_to_zero | denormals_are_zero);
  }
  ~FlushDenormals() { __builtin_ia32_ldmxcsr(before_); }
#else
  FlushDenormals() {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

#ifdef __x86_64__
 private:
  unsigned before_;
#endif
};

}  // namespace pdp::cpu
