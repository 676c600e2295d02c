#pragma once

#include <concepts>

#include <pdp/core/attention.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

/// Attention block by block, as Dao et al. describe it ("FlashAttention", NeurIPS 2022): no matrix of all positions by all positions is
/// ever in memory.
namespace pdp::cpu {

/// Computes the means of values, weighted by the softmax of queries times keys: x [rows, positions * row()] -> y [rows, positions * out()].
/// Writes attention_sums numbers for each row, position and head to `sums`.
template <std::floating_point T>
void attend(const Cpu& cpu, const Attention& how, Matrix<const T> x, Matrix<T> y, T* sums);

/// Computes the gradient of x from x, y, the gradient of y and `sums` of attend().
template <std::floating_point T>
void attend_backward(const Cpu& cpu, const Attention& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y, const T* sums,
                     Matrix<T> gradient_x);

/// Turns the queries and keys in x by the angles of their positions, in place.
template <std::floating_point T>
void rotate(const Cpu& cpu, const Attention& how, const Rotation& rotation, Matrix<T> x);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/attend.hpp>
#endif
