#pragma once

/// Definitions for pdp/cpu/float_rows.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/buffer.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/convert.hpp>
#include <pdp/cpu/float_rows.hpp>
#include <pdp/cpu/memory.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu::detail {

PDP_INLINE float* floats_of_thread(const Cpu& cpu, Index count) {
  thread_local Buffer<float> memory;  // thread_local, since a call has no state to keep it in
  if (count > memory.size()) {
    memory = {};  // never both at once
    memory = allocate<float>(cpu, count);
  }
  return memory.data();
}

PDP_INLINE void convert_some(const Cpu& cpu, const BFloat16* from, Index count, float* to) {
  convert(cpu, Matrix<const BFloat16>{from, 1, count}, Matrix<float>{to, 1, count});
}
PDP_INLINE void convert_some(const Cpu& cpu, const float* from, Index count, BFloat16* to) {
  convert(cpu, Matrix<const float>{from, 1, count}, Matrix<BFloat16>{to, 1, count});
}

}  // namespace pdp::cpu::detail
