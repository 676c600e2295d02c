#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/counted_rows.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/loss.hpp>

namespace pdp::loss {

namespace detail {

/// Returns the sum of weights of classes. Throws ConfigError if a weight is negative or not finite, or if all are 0.
[[nodiscard]] double sum_of_weights(std::span<const float> weights);
/// Throws ConfigError unless a model has `classes` outputs.
void check_classes(Index classes, Index outputs);

/// A cross-entropy with weights on a device.
template <class D>
class WeightedCrossEntropyOn {
 public:
  WeightedCrossEntropyOn(const D& device, const CrossEntropy& unweighted, std::span<const float> weights)
      : unweighted_{unweighted}, of_class_{allocate<float>(device, as_index(weights.size()))}, sum_{sum_of_weights(weights)} {
    upload(device, weights, of_class_.data());
  }

  template <class T>
  void operator()(const D& device, Matrix<const T> output, std::span<const std::int32_t> classes, const double* scale, Matrix<T> gradient,
                  LossSums* sums) const {
    check(output.cols);
    softmax_cross_entropy(device, output, classes, scale, gradient, sums, unweighted_.ignored(), unweighted_.smoothing(), weights());
  }
  template <class T>
  void part(const D& device, Matrix<const T> own, std::span<const std::int32_t> classes, Index first, Index columns,
            Matrix<Accumulated<T>> out) const {
    check(columns);
    softmax_part(device, own, classes, first, columns, out, unweighted_.ignored(), unweighted_.smoothing(), weights());
  }
  template <class T>
  void join(const D& device, Matrix<const T> own, std::span<const std::int32_t> classes, Index first, Index columns,
            Matrix<const Accumulated<T>> parts, const double* scale, Matrix<T> gradient, LossSums* sums) const {
    softmax_cross_entropy_of_parts(device, own, classes, first, parts, scale, gradient, sums, unweighted_.ignored(),
                                   unweighted_.smoothing(), columns, weights());
  }

 private:
  void check(Index outputs) const { check_classes(as_index(of_class_.size()), outputs); }
  [[nodiscard]] ClassWeights weights() const { return {of_class_.span(), sum_}; }

  CrossEntropy unweighted_;
  DeviceMemory<D, float> of_class_;
  double sum_;
};

}  // namespace detail

/// The cross-entropy with a weight for each class, for example because some classes are rare: a row's loss is multiplied by the weight of
/// its class, and means are divided by the sum of these weights, as in torch.nn.CrossEntropyLoss(weight). The model must have `Classes`
/// outputs. With label smoothing, the part of each class is multiplied by its weight, too.
template <std::size_t Classes>
struct WeightedCrossEntropy {
  using Target = std::int32_t;
  static constexpr bool has_classes = true;
  static constexpr bool acts_on_last_dimension = true;
  std::array<float, Classes> weights{};  // at least 0, and not all 0
  std::optional<Target> ignore_index{};  // rows with this target do not count; it need not be a class
  double label_smoothing = 0;            // from 0 to below 1

  [[nodiscard]] constexpr Index target_elements(Index) const { return 1; }
  [[nodiscard]] constexpr bool ignores_rows() const { return ignore_index.has_value(); }
  [[nodiscard]] constexpr bool counts(std::span<const Target> target) const { return unweighted().counts(target); }
  /// Returns the weight of a row with this target; 0 if the row does not count, or the target is no class.
  [[nodiscard]] constexpr double weight(std::span<const Target> target) const {
    const Index label = target.front();
    return counts(target) && label >= 0 && label < as_index(Classes) ? as_double(weights[as_size(label)]) : 0;
  }
  /// Throws LabelError if a class has no output, unless it is ignored.
  void check(std::span<const Target> classes, Index outputs) const { unweighted().check(classes, outputs); }
  /// Throws ConfigError unless a model has `Classes` outputs, and the weights are valid.
  void check_outputs(Index outputs) const {
    detail::check_classes(as_index(Classes), outputs);
    static_cast<void>(detail::sum_of_weights(weights));
  }

  static constexpr Index part_numbers = CrossEntropy::part_numbers;
  /// Returns the loss with its weights in the memory of a device.
  template <class D>
  [[nodiscard]] detail::WeightedCrossEntropyOn<D> on(const D& device) const {
    return {device, unweighted(), weights};
  }

 private:
  [[nodiscard]] constexpr CrossEntropy unweighted() const { return {.ignore_index = ignore_index, .label_smoothing = label_smoothing}; }
};

static_assert(IgnoresRows<WeightedCrossEntropy<2>> && WeighsRows<WeightedCrossEntropy<2>>);

}  // namespace pdp::loss

#ifndef PDP_SEPARATE_CORE
#include <pdp/loss/source/weighted_cross_entropy.hpp>
#endif
