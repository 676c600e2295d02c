#pragma once

#include <sched.h>

#include <string>

#include <pdp/core/device.hpp>
#include <pdp/host/activation.hpp>
#include <pdp/host/convert.hpp>
#include <pdp/host/gemm.hpp>
#include <pdp/host/loss.hpp>
#include <pdp/host/memory.hpp>
#include <pdp/host/parts.hpp>
#include <pdp/host/rows.hpp>
#include <pdp/host/tag.hpp>
#include <pdp/host/update.hpp>

namespace pdp {

static_assert(Device<host::Cpu, float> && Device<host::Cpu, double>);

namespace host {

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

}  // namespace host

}  // namespace pdp
