#include "matrix.hpp"

#include <cmath>

namespace examples {

std::vector<std::size_t> shares(pdp::Index rows, pdp::Index cols, int size) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < size; ++rank) counts.push_back(static_cast<std::size_t>(share(rows, rank, size) * cols));
  return counts;
}

OwnedMatrix transpose(View matrix) {
  OwnedMatrix transposed{matrix.cols, matrix.rows, matrix.data != nullptr};
  if (matrix.data == nullptr) return transposed;
  for (pdp::Index row = 0; row < matrix.rows; ++row)
    for (pdp::Index col = 0; col < matrix.cols; ++col) transposed.row(col)[row] = matrix.row(row)[col];
  return transposed;
}

double relative_error(View product, View expected) {
  double difference = 0, norm = 0;
  for (pdp::Index i = 0; i < expected.size(); ++i) {
    const double wanted = static_cast<double>(expected.data[i]), off = static_cast<double>(product.data[i]) - wanted;
    difference += off * off;
    norm += wanted * wanted;
  }
  return std::sqrt(difference / norm);
}

}  // namespace examples
