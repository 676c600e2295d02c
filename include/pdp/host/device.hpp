#pragma once

#include <string>

#include <pdp/core/device.hpp>
#include <pdp/host/activation.hpp>
#include <pdp/host/convert.hpp>
#include <pdp/host/gemm.hpp>
#include <pdp/host/loss.hpp>
#include <pdp/host/rows.hpp>
#include <pdp/host/tag.hpp>
#include <pdp/host/update.hpp>

namespace pdp {

static_assert(Device<host::Cpu, float> && Device<host::Cpu, double>);

namespace host {

/// What computes on this processor, in words.
inline std::string describe(const Cpu& cpu) {
  const char* const registers = cpu.simd() == Simd::avx512 ? "AVX-512" : cpu.simd() == Simd::avx2 ? "AVX2" : "vectors of 16 bytes";
  return text("matrix products by ", products_name(cpu), " on ", cpu.threads, cpu.threads == 1 ? " thread" : " threads",
              has_onednn(cpu) ? "" : ", as the program is not linked with pdp::onednn, which is faster", "; all else in ", registers);
}

}  // namespace host

}  // namespace pdp
