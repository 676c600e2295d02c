#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Computes the cross-entropy of the softmax of each row of logits against its class, and adds the results to `sums`. The gradient is
/// (softmax - one_hot) * *row_scale; it is not computed if `gradient` is empty. Subtracts the largest logit first, so that no exponential
/// overflows. Rows of the class `ignored` add nothing, and their gradient is zero. Throws LabelError if another class has no logit.
///
/// With label smoothing, one_hot becomes (1 - smoothing) one_hot + smoothing / columns, and the loss is the cross-entropy against that.
/// With weights, each element of this vector is multiplied by the weight of its class.
template <std::floating_point T>
void softmax_cross_entropy(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, const double* row_scale,
                           Matrix<T> gradient, LossSums* sums, Index ignored = no_class, double smoothing = 0,
                           const ClassWeights& weights = {});

/// Computes the part of each row's cross-entropy that depends on some columns of the logits. `logits` holds these columns, which start at
/// number `first`; all parts together have `columns`. Rows of the class `ignored` may have any numbers. Throws LabelError if another class
/// is not in [0, columns). `weights`: of all columns.
///
/// A row of `part` has four numbers: the largest logit; the sum of exp(logit - largest) of the others; the logit of the row's class, or 0
/// if another part has it; and 1 if the largest logit is that of the class, otherwise 0. A fifth number, if the row has room for it, is the
/// sum of the logits, multiplied by their weights, if smoothing is above 0, otherwise 0.
template <std::floating_point T>
void softmax_part(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first, Index columns, Matrix<T> part,
                  Index ignored = no_class, double smoothing = 0, const ClassWeights& weights = {});

/// Computes softmax_cross_entropy() for logits with columns divided into parts, from the results of softmax_part() for all parts. `parts`
/// is [parts * rows, 4 or more]: the rows of one part after those of another, in the order of the columns. `logits` and `gradient` hold the
/// columns from `first` on; all parts together have `columns`, which is read only if smoothing is above 0. Sums are joined as in Milakov
/// and Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867.
template <std::floating_point T>
void softmax_cross_entropy_of_parts(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const T> parts, const double* row_scale, Matrix<T> gradient, LossSums* sums,
                                    Index ignored = no_class, double smoothing = 0, Index columns = 1, const ClassWeights& weights = {});

/// Computes the squared error of each row, divided by its width, and adds it to `sums`. The gradient is 2 (output - target) / width *
/// *row_scale; it is not computed if `gradient` is empty. If `ignores_nan`, rows with a target that is NaN add nothing, and their gradient
/// is zero.
template <std::floating_point T>
void squared_error(const Cpu& cpu, Matrix<const T> output, Matrix<const T> target, const double* row_scale, Matrix<T> gradient,
                   LossSums* sums, bool ignores_nan = false);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/loss.hpp>
#endif
