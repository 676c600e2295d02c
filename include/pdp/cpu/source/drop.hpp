#pragma once

/// Definitions for pdp/cpu/drop.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/cpu/drop.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

template <class T>
void drop(const Cpu& cpu, const Pass& pass, float probability, Matrix<const T> x, Matrix<T> y) {
  const RowGenerator numbers = pass.row_generator();
  const Accumulated<T> kept = 1 / (1 - static_cast<Accumulated<T>>(probability));
  const Index least_rows = least_costly_part / 4 / (x.cols + 1) + 1;
  in_parts(cpu, x.rows, least_rows, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      numbers.for_each_uniform(row, x.cols, [&](Index col, float number) {
        const Index at = row * x.cols + col;
        y.data[at] = number < probability ? T{} : static_cast<T>(x.data[at] * kept);
      });
    }
  });
}

}  // namespace pdp::cpu
