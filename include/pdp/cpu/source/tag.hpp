#pragma once

/// Definitions for pdp/cpu/tag.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

PDP_INLINE void check(const Cpu& cpu) {
  constexpr int most = 1024;
  if (cpu.threads < 1 || cpu.threads > most)
    throw ConfigError{text("expected threads from 1 to ", most, ", as in {.threads = 2}, found ", cpu.threads)};
}

}  // namespace pdp::cpu
