#pragma once

#include <cstdint>
#include <span>

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Cross-entropy of the softmax of each row of logits against its class. The gradient is (softmax - one_hot) * *row_scale; none is computed
/// into an empty matrix. The largest logit is taken off first, so that no exponential overflows. Throws LabelError if a class
/// has no logit.
template <class T>
void softmax_cross_entropy(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, const double* row_scale,
                           Matrix<T> gradient, LossSums* sums);

/// What some columns of the logits, those from `first` on, say of each row's cross-entropy, in four numbers: the largest of them, the sum
/// of the others' exponentials with that one taken off (its own is 1), the logit of the row's class (0 where it is not among them), and
/// whether the largest is that.
template <class T>
void softmax_part(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first, Index columns,
                  Matrix<T> part);

/// softmax_cross_entropy of logits whose columns are divided, from what softmax_part has found of all of them, those from the first columns
/// first. `logits`, `gradient`: the columns from `first` on. Sums are joined as in Milakov and Gimelshein, "Online normalizer calculation
/// for softmax", arXiv:1805.02867.
template <class T>
void softmax_cross_entropy_of_parts(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const T> parts, const double* row_scale, Matrix<T> gradient, LossSums* sums);

/// The squared error of each row, divided by its width. The gradient is 2 (output - target) / width * *row_scale; none is computed into an
/// empty matrix.
template <class T>
void squared_error(const Cpu& cpu, Matrix<const T> output, Matrix<const T> target, const double* row_scale, Matrix<T> gradient,
                   LossSums* sums);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/loss.hpp>
#endif
