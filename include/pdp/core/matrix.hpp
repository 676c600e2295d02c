#pragma once

#include <span>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// Rows of equal width, one after another in memory; usually a row is a sample. Borrows the memory. `Matrix<const T>` is read-only.
template <class T>
struct Matrix {
  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;

  constexpr Matrix() = default;
  constexpr Matrix(T* values, Index row_count, Index column_count) : data{values}, rows{row_count}, cols{column_count} {}
  constexpr operator Matrix<const T>() const requires(!std::is_const_v<T>) { return {data, rows, cols}; }

  [[nodiscard]] constexpr Index size() const { return rows * cols; }
  [[nodiscard]] constexpr T* row(Index index) const { return data + index * cols; }
  [[nodiscard]] constexpr std::span<T> values() const { return {data, as_size(size())}; }
};

/// Returns the same values as rows of `width` values, which must divide the columns: the vectors along the last dimension of samples.
template <class T>
[[nodiscard]] constexpr Matrix<T> vectors(Matrix<T> samples, Index width) {
  return {samples.data, width == 0 ? samples.rows : samples.size() / width, width};
}

}  // namespace pdp
