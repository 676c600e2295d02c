#pragma once

#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/rpc/codec.hpp>

namespace pdp::rpc {

/// A matrix of floats with memory of its own; usually a row is a sample. The inputs, outputs and gradients of networks travel between ranks
/// in this form.
struct OwnedMatrix {
  Index rows = 0;
  Index cols = 0;
  std::vector<float> values;  // [rows, cols]

  /// Returns a copy of a matrix in host memory.
  [[nodiscard]] static OwnedMatrix of(Matrix<const float> matrix) {
    return {matrix.rows, matrix.cols, {matrix.values().begin(), matrix.values().end()}};
  }
  [[nodiscard]] Matrix<const float> matrix() const { return {values.data(), rows, cols}; }
  /// Throws ShapeError unless there are `width` columns, at least one row, and as many values as the shape says. `name`: of the matrix, for
  /// the message.
  void check(const char* name, Index width) const {
    if (rows < 1 || cols != width)
      throw ShapeError{text(name, " has the shape [", rows, ", ", cols, "]; expected at least one row of ", width, " columns")};
    if (values.size() % as_size(cols) != 0 || values.size() / as_size(cols) != as_size(rows))
      throw ShapeError{text(name, " has ", values.size(), " values; its shape is [", rows, ", ", cols, "]")};
  }
};
static_assert(Travels<OwnedMatrix>);

}  // namespace pdp::rpc
