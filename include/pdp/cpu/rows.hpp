#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Adds `row`, such as a bias, to every row of `rows`.
template <class T>
void add_row(const Cpu& cpu, const T* row, Matrix<T> rows);

/// Computes sums (+)= the sum of all rows, such as the gradient of a bias.
template <class T>
void sum_rows(const Cpu& cpu, Matrix<const T> rows, T* sums, bool accumulate);

/// Computes out = left + right, elementwise. `out` may be one of them.
template <class T>
void add(const Cpu& cpu, Matrix<const T> left, Matrix<const T> right, Matrix<T> out);

/// Adds the squared norm to *sum. The sum is in double, so for floats it is finite if all of them are.
template <class T>
void sum_of_squares(const Cpu& cpu, Matrix<const T> values, double* sum);

template <class T>
void copy(const Cpu&, Matrix<const T> from, Matrix<T> to);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/rows.hpp>
#endif
