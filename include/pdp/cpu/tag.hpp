#pragma once

#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/simd/simd.hpp>

namespace pdp::cpu {

/// Who multiplies matrices of floats: oneDNN where CMake's target pdp::onednn is linked, or Eigen in any case. Eigen multiplies all others.
enum class Products { best, eigen };

/// What is used of the processor that runs the program.
struct Cpu {
  static constexpr bool uses_host_memory = true;
  struct Recordings {};

  int threads = 1;  // that products, and loops over many numbers, may use where oneDNN has some
  Products products = Products::best;
  std::optional<Simd> registers{};  // unless given, the widest

  [[nodiscard]] Simd simd() const { return registers ? *registers : widest_simd(); }
};

/// Throws ConfigError for a number of threads that a rank cannot have.
void check(const Cpu& cpu);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/tag.hpp>
#endif
