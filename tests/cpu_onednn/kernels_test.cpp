#include <pdp/cpu/onednn/kernels.hpp>

#include <algorithm>
#include <optional>
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

TEST_CASE("Kernels multiplies bfloat16 with any operand transposed, and rounds sums of floats once", "[host][onednn]") {
  using pdp::BFloat16;
  using pdp::cpu::onednn::OperandOf;
  Kernels kernels;
  const auto check = [&]<class Out>(Index rows, Index cols, Index depth, bool left_is_transposed, bool right_is_transposed, bool accumulate,
                                    Out) {
    CAPTURE(rows, cols, depth, left_is_transposed, right_is_transposed, accumulate);
    // Small whole numbers, so that products and sums are exact in every order.
    const auto number = [](Index i, Index j) { return static_cast<float>((i * 7 + j * 5) % 9 - 4); };
    std::vector<BFloat16> left, right;
    for (Index i = 0; i < (left_is_transposed ? depth : rows); ++i)
      for (Index j = 0; j < (left_is_transposed ? rows : depth); ++j)
        left.push_back(BFloat16{left_is_transposed ? number(j, i) : number(i, j)});
    for (Index i = 0; i < (right_is_transposed ? cols : depth); ++i)
      for (Index j = 0; j < (right_is_transposed ? depth : cols); ++j)
        right.push_back(BFloat16{right_is_transposed ? number(j, i + 1) : number(i, j + 1)});
    std::vector<Out> c(static_cast<std::size_t>(rows * cols), Out{3.0f});
    const std::vector<Out> before = c;
    const std::optional<dnnl_status_t> status =
        kernels.run(OperandOf<BFloat16>{left.data(), left_is_transposed ? rows : depth, left_is_transposed},
                    OperandOf<BFloat16>{right.data(), right_is_transposed ? depth : cols, right_is_transposed},
                    Matrix<Out>{c.data(), rows, cols}, depth, accumulate, 1);
    if (!status) {
      CHECK(std::equal(c.begin(), c.end(), before.begin(), [](Out a, Out b) { return static_cast<float>(a) == static_cast<float>(b); }));
      return false;
    }
    REQUIRE(*status == dnnl_success);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j) {
        float sum = accumulate ? 3.0f : 0.0f;
        for (Index k = 0; k < depth; ++k) sum += number(i, k) * number(k, j + 1);
        REQUIRE(static_cast<float>(c[static_cast<std::size_t>(i * cols + j)]) == static_cast<float>(Out{sum}));
      }
    return true;
  };
  int computed = 0;
  for (const bool left_is_transposed : {false, true})
    for (const bool right_is_transposed : {false, true})
      for (const bool accumulate : {false, true}) {
        computed += check(64, 48, 32, left_is_transposed, right_is_transposed, accumulate, BFloat16{}) ? 1 : 0;
        computed += check(33, 7, 70, left_is_transposed, right_is_transposed, accumulate, float{}) ? 1 : 0;
      }
  if (dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16) CHECK(computed > 0);
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
