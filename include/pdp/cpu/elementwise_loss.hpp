#pragma once

#include <algorithm>

#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/simd/elementary.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// Sets all lanes but the first `some` to zero.
template <class V>
void clear_rest(V& lanes, Index some) {
  alignas(V) typename V::Number numbers[V::count];
  lanes.store(numbers);
  lanes = V::load(numbers, some);
}

}  // namespace detail

/// Computes the sum of function(output, target) over each row, divided by its width, and adds it to `sums`; see loss::Elementwise. The
/// gradient is function.derivative(output, target) / width * *row_scale; it is not computed if `gradient` is empty. If `ignores_nan`, rows
/// with a target that is NaN add nothing, and their gradient is zero. `output`, `target` and `gradient`: [rows, width].
template <class Function, class T>
void elementwise_loss(const Cpu& cpu, const Function& function, Matrix<const T> output, Matrix<const T> target, const double* row_scale,
                      Matrix<T> gradient, LossSums* sums, bool ignores_nan = false) {
  const T scale = static_cast<T>(*row_scale);
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    const T width = static_cast<T>(output.cols), factor = scale / width;
    const bool writes = gradient.data != nullptr;
    double loss = 0;
    for (Index r = 0; r < output.rows; ++r) {
      const T *const x = output.row(r), *const y = target.row(r);
      T* const g = writes ? gradient.row(r) : nullptr;
      if (ignores_nan && std::any_of(y, y + output.cols, [](T each) { return is_nan(each); })) {
        if (writes) std::fill_n(g, output.cols, T{});
        continue;
      }
      V total{};
      const auto add = [&](Index c, auto io, V& value) {
        const V from = io.load(x + c), to = io.load(y + c);
        value = function(from, to);
        if (writes) io.store(function.derivative(from, to) * factor, g + c);
      };
      V value;
      Index c = 0;
      for (; c + V::count <= output.cols; c += V::count) {
        add(c, detail::WholeLanes<V>{}, value);
        total = total + value;
      }
      if (const Index rest = output.cols - c; rest > 0) {
        add(c, detail::SomeLanes<V>{rest}, value);
        detail::clear_rest(value, rest);
        total = total + value;
      }
      loss += static_cast<double>(total.sum() / width);
    }
    sums->loss += loss;
  });
}

}  // namespace pdp::cpu
