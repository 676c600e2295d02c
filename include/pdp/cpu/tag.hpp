#pragma once

#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/simd/simd.hpp>

namespace pdp::cpu {

/// The library for products of matrices and convolutions of floats. `best` is oneDNN if CMake's target pdp::onednn is linked, otherwise
/// Eigen. Eigen computes those of doubles. Products of bfloat16 are products of floats unless the processor has faster ones. With
/// `sixteen_bits`, oneDNN multiplies bfloat16 also if that is slower.
enum class Products { best, eigen, sixteen_bits };

/// A CPU device: the resources of the processor that a rank uses.
struct Cpu {
  static constexpr bool uses_host_memory = true;
  struct Recordings {};

  int threads = 1;  // for products and long loops; more than 1 needs a oneDNN with OpenMP
  Products products = Products::best;
  std::optional<Simd> registers{};  // default: the widest

  /// Returns the same device with one thread.
  [[nodiscard]] Cpu alone() const { return {1, products, registers}; }
  [[nodiscard]] Simd simd() const { return registers ? *registers : widest_simd(); }
};

/// Throws ConfigError if the number of threads is not from 1 to 1024.
void check(const Cpu& cpu);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/tag.hpp>
#endif
