#pragma once

#include <sched.h>

#include <string>

#include <pdp/core/device.hpp>
#include <pdp/cpu/activation.hpp>
#include <pdp/cpu/convert.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/loss.hpp>
#include <pdp/cpu/memory.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/rows.hpp>
#include <pdp/cpu/tag.hpp>
#include <pdp/cpu/update.hpp>

namespace pdp {

static_assert(Device<cpu::Cpu, float> && Device<cpu::Cpu, double>);

namespace cpu {

/// How many cores this process may use; 0 where nobody knows.
inline int usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

/// What computes on this processor, in words.
inline std::string describe(const Cpu& cpu) {
  const char* const registers = cpu.simd() == Simd::avx512 ? "AVX-512" : cpu.simd() == Simd::avx2 ? "AVX2" : "vectors of 16 bytes";
  const bool is_linked = onednn::is_linked();
  return text("matrix products of floats by ", products_name(cpu),
              is_linked ? "" : ", as the program is not linked with pdp::onednn, which is faster", "; all else in ", registers,
              has_threads() ? text("; on ", cpu.threads, cpu.threads == 1 ? " thread" : " threads") : std::string{});
}

}  // namespace cpu

}  // namespace pdp
