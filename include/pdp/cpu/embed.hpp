#pragma once

#include <cstdint>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/token.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Copies the row of `weight` that each token names to a row of y: [tokens, width]. A token whose vector is not in this part of the table
/// gives zeros. All tokens must be in the vocabulary.
template <class T>
void embed(const Cpu& cpu, Matrix<const std::int32_t> tokens, const TokenRows& rows, Matrix<const T> weight, Matrix<T> y);

/// Computes the gradient of `weight` from that of y: for each token the sum of the rows that belong to it, in their order.
template <class T>
void embed_backward(const Cpu& cpu, Matrix<const std::int32_t> tokens, const TokenRows& rows, Matrix<const T> gradient_y,
                    Matrix<Accumulated<T>> gradient_weight, bool accumulate);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/embed.hpp>
#endif
