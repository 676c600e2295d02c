#pragma once

#include <cstdint>
#include <span>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/loss/loss.hpp>

namespace pdp::loss {

/// The cross-entropy of a row's softmax: -log softmax(output)[class]. Targets are class numbers from 0.
struct CrossEntropy {
  using Target = std::int32_t;
  static constexpr bool has_classes = true;
  [[nodiscard]] constexpr Index target_elements(Index) const { return 1; }
  /// Throws LabelError if a class has no output.
  void check(std::span<const Target> classes, Index outputs) const;

  template <class D, class T>
  void operator()(const D& device, Matrix<const T> output, std::span<const Target> classes, const double* scale, Matrix<T> gradient,
                  LossSums* sums) const {
    softmax_cross_entropy(device, output, classes, scale, gradient, sums);
  }

  /// The numbers that part() computes for each row: the largest logit, the sum of exp(logit - largest) of the others, the logit of the
  /// class (0 if another rank has it), and 1 if the largest logit is that of the class, otherwise 0.
  static constexpr Index part_numbers = 4;
  template <class D, class T>
  void part(const D& device, Matrix<const T> own, std::span<const Target> classes, Index first, Index columns,
            Matrix<Accumulated<T>> out) const {
    softmax_part(device, own, classes, first, columns, out);
  }
  template <class D, class T>
  void join(const D& device, Matrix<const T> own, std::span<const Target> classes, Index first, Index, Matrix<const Accumulated<T>> parts,
            const double* scale, Matrix<T> gradient, LossSums* sums) const {
    softmax_cross_entropy_of_parts(device, own, classes, first, parts, scale, gradient, sums);
  }
};

}  // namespace pdp::loss

#ifndef PDP_SEPARATE_CORE
#include <pdp/loss/source/cross_entropy.hpp>
#endif
