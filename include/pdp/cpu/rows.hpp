#pragma once

#include <concepts>

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Adds `row`, such as a bias, to every row of `rows`.
template <std::floating_point T>
void add_row(const Cpu& cpu, const T* row, Matrix<T> rows);

/// Computes sums (+)= the sum of all rows, such as the gradient of a bias.
template <std::floating_point T>
void sum_rows(const Cpu& cpu, Matrix<const T> rows, T* sums, bool accumulate);

/// Computes out = left + right, elementwise. `out` may be `left` or `right`.
template <class T>
void add(const Cpu& cpu, Matrix<const T> left, Matrix<const T> right, Matrix<T> out);

/// Adds the squared norm of the values to *sum. Adds in double, so the result for floats is finite if all values are.
template <std::floating_point T>
void sum_of_squares(const Cpu& cpu, Matrix<const T> values, double* sum);

/// Computes to = from.
template <class T>
void copy(const Cpu&, Matrix<const T> from, Matrix<T> to);

/// Copies `columns` columns of each row, from column `first` of `from` to column `to_first` of `to`.
template <class T>
void copy_columns(const Cpu&, Matrix<const T> from, Index first, Matrix<T> to, Index to_first, Index columns);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/rows.hpp>
#endif
