#pragma once

/// Definitions for pdp/cpu/embed.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/embed.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

template <class T>
void embed(const Cpu& cpu, Matrix<const std::int32_t> tokens, const TokenRows& rows, Matrix<const T> weight, Matrix<T> y) {
  in_parts(cpu, tokens.size(), least_part / std::max<Index>(weight.cols, 1) + 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Index row = tokens.data[i] - rows.first;
      if (0 <= row && row < weight.rows)
        std::copy_n(weight.row(row), weight.cols, y.data + i * weight.cols);
      else
        std::fill_n(y.data + i * weight.cols, weight.cols, T{});
    }
  });
}

template <class T>
void embed_backward(const Cpu& cpu, Matrix<const std::int32_t> tokens, const TokenRows& rows, Matrix<const T> gradient_y,
                    Matrix<Accumulated<T>> gradient_weight, bool accumulate) {
  // Each thread has some columns, so that no two threads write to the same number.
  const Index width = gradient_weight.cols;
  in_parts(cpu, width, least_part / std::max<Index>(tokens.size(), 1) + 1, [&](Index begin, Index end) {
    if (!accumulate)
      for (Index row = 0; row < gradient_weight.rows; ++row)
        std::fill(gradient_weight.row(row) + begin, gradient_weight.row(row) + end, Accumulated<T>{});
    for (Index i = 0; i < tokens.size(); ++i) {
      const T* const from = gradient_y.data + i * width;
      const Index row = tokens.data[i] - rows.first;
      if (row < 0 || row >= gradient_weight.rows) continue;
      Accumulated<T>* const to = gradient_weight.row(row);
      elementwise<T>(cpu, begin, end, [=]<class V>(Index at, auto io) { io.store(io.load(to + at) + io.load(from + at), to + at); });
    }
  });
}

}  // namespace pdp::cpu
