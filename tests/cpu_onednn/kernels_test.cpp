#include <pdp/cpu/onednn/kernels.hpp>

#include <algorithm>
#include <vector>

#include "catch.hpp"

using pdp::Index;
using pdp::Matrix;
using pdp::cpu::onednn::Kernels;
using pdp::cpu::onednn::Operand;

namespace {

/// Returns whether oneDNN has blocked kernels for floats on this processor. It has them for AVX-512 only.
bool has_blocks() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core; }

/// Returns whether a kernel has computed c = left * right for matrices of ones. Otherwise c must be unchanged.
bool computes(Kernels& kernels, Index rows, Index cols, Index depth, bool left_is_transposed = false) {
  const std::vector<float> left(static_cast<std::size_t>(rows * depth), 1), right(static_cast<std::size_t>(depth * cols), 1);
  std::vector<float> c(static_cast<std::size_t>(rows * cols), -1);
  const Operand a{left.data(), left_is_transposed ? rows : depth, left_is_transposed}, b{right.data(), cols, false};
  const auto status = kernels.run(a, b, Matrix<float>{c.data(), rows, cols}, depth, false, 1);
  if (status) REQUIRE(*status == dnnl_success);
  const float expected = status ? static_cast<float>(depth) : -1;
  REQUIRE(std::ranges::all_of(c, [&](float value) { return value == expected; }));
  return status.has_value();
}

}  // namespace

TEST_CASE("Kernels runs products with at least 16 rows and an untransposed left operand, and no others", "[host][onednn]") {
  Kernels kernels;
  CHECK(computes(kernels, 64, 48, 32) == has_blocks());
  CHECK(computes(kernels, 16, 48, 32) == has_blocks());
  CHECK(computes(kernels, 64, 48, 32) == has_blocks());  // the cached kernel
  CHECK_FALSE(computes(kernels, 15, 48, 32));
  CHECK_FALSE(computes(kernels, 64, 48, 32, true));
}

TEST_CASE("Kernels keeps at most 256 kernels and evicts none", "[host][onednn]") {
  Kernels kernels;
  for (Index rows = 16; rows < 16 + 256; ++rows) {
    INFO(rows << " rows");
    CHECK(computes(kernels, rows, 32, 16) == has_blocks());
  }
  CHECK_FALSE(computes(kernels, 16 + 256, 32, 16));
  CHECK(computes(kernels, 16, 32, 16) == has_blocks());
}
