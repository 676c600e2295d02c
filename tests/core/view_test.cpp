#include <pdp/core/matrix.hpp>

#include <concepts>
#include <vector>

#include "catch.hpp"

using pdp::Index;
using pdp::Matrix;

TEST_CASE("a Matrix finds its rows one after another", "[core]") {
  const Index rows = GENERATE(as<Index>{}, 0, 1, 3), cols = GENERATE(as<Index>{}, 1, 5);
  std::vector<float> memory(static_cast<std::size_t>(rows * cols));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);

  const Matrix<float> matrix{memory.data(), rows, cols};
  CHECK(matrix.size() == rows * cols);
  CHECK(matrix.values().size() == memory.size());
  CHECK(matrix.values().data() == memory.data());
  for (Index r = 0; r < rows; ++r) {
    CHECK(matrix.row(r) == memory.data() + r * cols);
    CHECK(matrix.row(r)[cols - 1] == static_cast<float>((r + 1) * cols - 1));
  }
}

TEST_CASE("a Matrix borrows: what is written through one is read through another", "[core]") {
  std::vector<double> memory(6);
  const Matrix<double> out{memory.data(), 2, 3};
  const Matrix<const double> in = out;
  out.row(1)[2] = 7;
  CHECK(in.row(1)[2] == 7);
  CHECK(memory[5] == 7);
}

TEST_CASE("a Matrix for reading does not become one for writing", "[core]") {
  static_assert(std::convertible_to<Matrix<float>, Matrix<const float>>);
  static_assert(!std::convertible_to<Matrix<const float>, Matrix<float>>);
  static_assert(!std::convertible_to<Matrix<float>, Matrix<const double>>);
  static_assert(Matrix<float>{}.size() == 0 && Matrix<float>{}.data == nullptr);
  CHECK(Matrix<const float>{}.values().empty());
}
