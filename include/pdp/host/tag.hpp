#pragma once

#include <optional>

#include <pdp/host/simd.hpp>

namespace pdp::host {

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

}  // namespace pdp::host
