#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/counted_rows.hpp>
#include <pdp/loss/loss.hpp>

namespace pdp::loss {

namespace detail {
template <class D>
class WeightedCrossEntropyOn;
}

/// The cross-entropy of a row's softmax: -log softmax(output)[class]. Targets are class numbers from 0. If a sample's output has several
/// dimensions, such as [positions, classes], each vector along the last one is a row, with a class of its own.
///
/// With label smoothing it is (1 - label_smoothing) times that, plus label_smoothing times the mean of -log softmax(output) over all
/// classes. Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR 2016.
struct CrossEntropy {
  using Target = std::int32_t;
  static constexpr bool has_classes = true;
  static constexpr bool acts_on_last_dimension = true;
  std::optional<Target> ignore_index{};  // rows with this target do not count; it need not be a class
  double label_smoothing = 0;            // from 0 to below 1

  [[nodiscard]] constexpr Index target_elements(Index) const { return 1; }
  [[nodiscard]] constexpr bool ignores_rows() const { return ignore_index.has_value(); }
  [[nodiscard]] constexpr bool counts(std::span<const Target> target) const { return target.front() != ignored(); }
  /// Throws LabelError if a class has no output, unless it is ignored.
  void check(std::span<const Target> classes, Index outputs) const;

  template <class D, class T>
  void operator()(const D& device, Matrix<const T> output, std::span<const Target> classes, const double* scale, Matrix<T> gradient,
                  LossSums* sums) const {
    softmax_cross_entropy(device, output, classes, scale, gradient, sums, ignored(), smoothing());
  }

  /// The numbers that part() computes for each row: the largest logit, the sum of exp(logit - largest) of the others, the logit of the
  /// class (0 if another rank has it), and 1 if the largest logit is that of the class, otherwise 0. With label smoothing, the last one is
  /// the sum of the logits.
  static constexpr Index part_numbers = 5;
  template <class D, class T>
  void part(const D& device, Matrix<const T> own, std::span<const Target> classes, Index first, Index columns,
            Matrix<Accumulated<T>> out) const {
    softmax_part(device, own, classes, first, columns, out, ignored(), smoothing());
  }
  template <class D, class T>
  void join(const D& device, Matrix<const T> own, std::span<const Target> classes, Index first, Index columns,
            Matrix<const Accumulated<T>> parts, const double* scale, Matrix<T> gradient, LossSums* sums) const {
    softmax_cross_entropy_of_parts(device, own, classes, first, parts, scale, gradient, sums, ignored(), smoothing(), columns);
  }

 private:
  template <class D>
  friend class detail::WeightedCrossEntropyOn;
  [[nodiscard]] constexpr Index ignored() const { return ignore_index ? Index{*ignore_index} : no_class; }
  /// Returns label_smoothing. Throws ConfigError if it is not from 0 to below 1.
  [[nodiscard]] double smoothing() const;
};

static_assert(IgnoresRows<CrossEntropy>);

}  // namespace pdp::loss

#ifndef PDP_SEPARATE_CORE
#include <pdp/loss/source/cross_entropy.hpp>
#endif
