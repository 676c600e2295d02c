#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Adds one row to every row of `rows`: a bias.
template <class T>
void add_row(const Cpu& cpu, const T* row, Matrix<T> rows);

/// sums (+)= the sum of all rows: the gradient of a bias.
template <class T>
void sum_rows(const Cpu& cpu, Matrix<const T> rows, T* sums, bool accumulate);

/// out = left + right, elementwise. `out` may be one of them.
template <class T>
void add(const Cpu& cpu, Matrix<const T> left, Matrix<const T> right, Matrix<T> out);

/// *sum += the square of the norm, in double: of floats it is finite unless one of them is not.
template <class T>
void sum_of_squares(const Cpu& cpu, Matrix<const T> values, double* sum);

template <class T>
void copy(const Cpu&, Matrix<const T> from, Matrix<T> to);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/rows.hpp>
#endif
