#pragma once

#include <cmath>
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
inline std::vector<std::size_t> shares(pdp::Index rows, pdp::Index cols, int size) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < size; ++rank) counts.push_back(static_cast<std::size_t>(share(rows, rank, size) * cols));
  return counts;
}

inline OwnedMatrix transpose(View matrix) {
  OwnedMatrix transposed{matrix.cols, matrix.rows, matrix.data != nullptr};
  if (matrix.data == nullptr) return transposed;
  for (pdp::Index row = 0; row < matrix.rows; ++row)
    for (pdp::Index col = 0; col < matrix.cols; ++col) transposed.row(col)[row] = matrix.row(row)[col];
  return transposed;
}

/// The norm of the difference over that of what was expected (Frobenius), both summed in double.
inline double relative_error(View product, View expected) {
  double difference = 0, norm = 0;
  for (pdp::Index i = 0; i < expected.size(); ++i) {
    const double wanted = static_cast<double>(expected.data[i]), off = static_cast<double>(product.data[i]) - wanted;
    difference += off * off;
    norm += wanted * wanted;
  }
  return std::sqrt(difference / norm);
}

}  // namespace examples
