#include <pdp/core/matrix.hpp>

#include <concepts>
#include <vector>

#include "catch.hpp"

using pdp::Index;
using pdp::Matrix;

TEST_CASE("Matrix::row finds the rows one after another in memory", "[core]") {
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

TEST_CASE("Matrix borrows its memory, so all views of it see a write", "[core]") {
  std::vector<double> memory(6);
  const Matrix<double> out{memory.data(), 2, 3};
  const Matrix<const double> in = out;
  out.row(1)[2] = 7;
  CHECK(in.row(1)[2] == 7);
  CHECK(memory[5] == 7);
}

TEST_CASE("Matrix converts to a view of const elements, but not back", "[core]") {
  static_assert(std::convertible_to<Matrix<float>, Matrix<const float>>);
  static_assert(!std::convertible_to<Matrix<const float>, Matrix<float>>);
  static_assert(!std::convertible_to<Matrix<float>, Matrix<const double>>);
  static_assert(Matrix<float>{}.size() == 0 && Matrix<float>{}.data == nullptr);
  CHECK(Matrix<const float>{}.values().empty());
}
