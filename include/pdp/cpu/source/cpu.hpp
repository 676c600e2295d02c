#pragma once

/// Definitions for pdp/cpu/cpu.hpp; see pdp/core/separate_compilation.hpp.

#include <sched.h>

#include <algorithm>
#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cgroup.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/onednn/product.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

PDP_INLINE int usable_cores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 0;
  return std::min(CPU_COUNT(&cores), cgroup_cores().value_or(CPU_COUNT(&cores)));
}

PDP_INLINE std::string describe(const Cpu& cpu) {
  const char* const registers = cpu.simd() == Simd::avx512 ? "AVX-512" : cpu.simd() == Simd::avx2 ? "AVX2" : "vectors of 16 bytes";
  const bool is_linked = onednn::is_linked();
  return text("matrix products of floats by ", products_name(cpu), is_linked ? "" : " (link pdp::onednn for faster products)",
              "; all else in ", registers,
              has_threads() ? text("; on ", cpu.threads, cpu.threads == 1 ? " thread" : " threads") : std::string{});
}

}  // namespace pdp::cpu
