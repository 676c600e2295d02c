#pragma once

#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/matrix.hpp>

namespace examples {

using View = pdp::Matrix<const float>;

/// A matrix with memory of its own, zero at first. On a rank that does not hold it, it has its shape and no data.
struct OwnedMatrix : pdp::Matrix<float> {
  OwnedMatrix(pdp::Index row_count, pdp::Index column_count, bool held = true)
      : Matrix{nullptr, row_count, column_count}, memory{held ? row_count * column_count : 0} {
    data = memory.data();
  }
  pdp::Buffer<float> memory;
};

/// Rows that are a rank's share: as many as any other's, or one more. None, where there are more ranks than rows.
constexpr pdp::Index share(pdp::Index rows, int rank, int size) { return rows * (rank + 1) / size - rows * rank / size; }
/// Elements of each rank's share.
std::vector<std::size_t> shares(pdp::Index rows, pdp::Index cols, int size);

OwnedMatrix transpose(View matrix);

/// The norm of the difference over that of what was expected (Frobenius), both summed in double.
double relative_error(View product, View expected);

}  // namespace examples
