#pragma once

/// Definitions for pdp/cpu/loss.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/loss.hpp>
#include <pdp/cpu/simd/elementary.hpp>
#include <pdp/cpu/source/exponentials.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// The vector against which the cross-entropy of a row is computed: (1 - smoothing) one_hot + smoothing / columns, multiplied by weights.
struct SmoothLabels {
  ClassWeights weights;
  double smoothing = 0, of_class = 0;  // of_class: the second term, without weights

  SmoothLabels(double by, Index columns, const ClassWeights& of) : weights{of}, smoothing{by}, of_class{by / as_double(columns)} {}

  /// Returns the first term of the element at the label.
  [[nodiscard]] double of_label(Index label) const {
    return (1 - smoothing) * (weights.any() ? as_double(weights.of_class[as_size(label)]) : 1);
  }
  /// Returns the sum of the second term over all classes.
  [[nodiscard]] double of_classes() const { return weights.any() ? of_class * weights.sum : smoothing; }
  /// Subtracts the second term, multiplied by `scale`, from the gradient of columns that begin at `first`. The caller has subtracted it if
  /// there are no weights.
  template <class T>
  void subtract_from(T* gradient, Index columns, Index first, T scale) const {
    if (smoothing > 0 && weights.any())
      for (Index c = 0; c < columns; ++c) gradient[c] -= scale * static_cast<T>(weights.of_class[as_size(first + c)]);
  }
  /// Returns the sum of some logits, multiplied by weights.
  template <class T>
  [[nodiscard]] double sum_of(const T* logits, Index columns, Index first) const {
    if (!weights.any()) return sum(logits, columns);
    double total = 0;
    for (Index c = 0; c < columns; ++c) total += as_double(weights.of_class[as_size(first + c)]) * as_double(logits[c]);
    return total;
  }
};

}  // namespace detail

template <std::floating_point T>
void softmax_cross_entropy(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, const double* row_scale,
                           Matrix<T> gradient, LossSums* sums, Index ignored, double smoothing, const ClassWeights& weights) {
  const detail::SmoothLabels labels{smoothing, logits.cols, weights};
  const double scale = *row_scale;
  const T scale_of_class = static_cast<T>(scale * labels.of_class);
  check_labels(classes.first(as_size(logits.rows)), logits.cols, ignored);
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    const Index width = logits.cols;
    const bool writes = gradient.data != nullptr;
    LossSums found;
    if (writes) {  // exponentials of all rows in one pass, as a row is often shorter than a register
      for (Index r = 0; r < logits.rows; ++r) {
        const T* const x = logits.row(r);
        const T largest = detail::largest<V>(x, width);
        detail::transform<V>(x, width, gradient.row(r), [largest](const auto& logit) { return logit - largest; });
      }
      detail::exponentials<V>(gradient.data, T{}, gradient.size(), gradient.data);
    }
    for (Index r = 0; r < logits.rows; ++r) {
      const T* const x = logits.row(r);
      const Index label = classes[as_size(r)];
      if (label == ignored) {
        if (writes) std::fill_n(gradient.row(r), width, T{});
        continue;
      }
      const T largest = detail::largest<V>(x, width);
      // If several logits are equally large, the first counts as the largest.
      if (!is_nan(largest) && x[label] == largest && std::find(x, x + label, largest) == x + label) found.correct += 1;
      const double of_label = labels.of_label(label), of_all = of_label + labels.of_classes();
      double total = 0;
      if (writes) {
        T* const g = gradient.row(r);
        total = detail::sum(g, width);
        const T factor = static_cast<T>(scale * of_all) / static_cast<T>(total), shared = weights.any() ? T{} : scale_of_class;
        detail::transform<V>(g, width, g, [factor, shared](const auto& each) { return each * factor - shared; });
        labels.subtract_from(g, width, 0, scale_of_class);
        g[label] -= static_cast<T>(scale * of_label);
      } else {
        total = detail::sum_of_exponentials<V>(x, largest, width);
      }
      found.loss += of_all * (std::log(total) + as_double(largest)) - of_label * as_double(x[label]);
      if (smoothing > 0) found.loss -= labels.of_class * labels.sum_of(x, width, 0);
    }
    sums->loss += found.loss;
    sums->correct += found.correct;
  });
}

template <std::floating_point T>
void softmax_part(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first, Index columns, Matrix<T> part,
                  Index ignored, double smoothing, const ClassWeights& weights) {
  const detail::SmoothLabels labels{smoothing, columns, weights};
  check_labels(classes.first(as_size(logits.rows)), columns, ignored);
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    for (Index r = 0; r < logits.rows; ++r) {
      const Index label = classes[as_size(r)] - first;
      const T* const x = logits.row(r);
      T* const known = part.row(r);
      known[0] = detail::largest<V>(x, logits.cols);
      const bool rules_all_out = is_infinite(known[0]) && is_negative(known[0]);
      known[1] = rules_all_out ? T{} : static_cast<T>(detail::sum_of_exponentials<V>(x, known[0], logits.cols) - 1);
      const bool is_here = label >= 0 && label < logits.cols;
      known[2] = is_here ? x[label] : T{};
      known[3] = static_cast<T>(is_here && !is_nan(known[0]) && x[label] == known[0] && std::find(x, x + label, known[0]) == x + label);
      if (part.cols > 4) known[4] = smoothing > 0 ? static_cast<T>(labels.sum_of(x, logits.cols, first)) : T{};
    }
  });
}

template <std::floating_point T>
void softmax_cross_entropy_of_parts(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const T> parts, const double* row_scale, Matrix<T> gradient, LossSums* sums, Index ignored,
                                    double smoothing, Index columns, const ClassWeights& weights) {
  const detail::SmoothLabels labels{smoothing, columns, weights};
  const double scale = *row_scale;
  const T scale_of_class = static_cast<T>(scale * labels.of_class);
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    LossSums found;
    for (Index r = 0; r < logits.rows; ++r) {
      const Index label = classes[as_size(r)];
      if (label == ignored) {
        if (gradient.data != nullptr) std::fill_n(gradient.row(r), logits.cols, T{});
        continue;
      }
      const T* best = parts.row(r);
      for (Index other = r + logits.rows; other < parts.rows; other += logits.rows)
        if (is_greater(parts.row(other)[0], best[0])) best = parts.row(other);
      const double of_label = labels.of_label(label), of_all = of_label + labels.of_classes();
      double total = 0, logit = 0, sum = 0;
      for (Index other = r; other < parts.rows; other += logits.rows) {
        const T* const known = parts.row(other);
        total += (1 + as_double(known[1])) * std::exp(as_double(known[0]) - as_double(best[0]));
        logit += as_double(known[2]);
        if (smoothing > 0) sum += as_double(known[4]);
      }
      if (gradient.data != nullptr) {
        T* const g = gradient.row(r);
        detail::exponentials<V>(logits.row(r), best[0], logits.cols, g);
        const T factor = static_cast<T>(scale * of_all) / static_cast<T>(total), shared = weights.any() ? T{} : scale_of_class;
        detail::transform<V>(g, logits.cols, g, [factor, shared](const auto& each) { return each * factor - shared; });
        labels.subtract_from(g, logits.cols, first, scale_of_class);
        if (label >= first && label - first < logits.cols) g[label - first] -= static_cast<T>(scale * of_label);
      }
      found.correct += best[3] != 0 ? 1 : 0;
      found.loss += of_all * (std::log(total) + as_double(best[0])) - of_label * logit;
      if (smoothing > 0) found.loss -= labels.of_class * sum;
    }
    sums->loss += found.loss;
    sums->correct += found.correct;
  });
}

template <std::floating_point T>
void squared_error(const Cpu& cpu, Matrix<const T> output, Matrix<const T> target, const double* row_scale, Matrix<T> gradient,
                   LossSums* sums, bool ignores_nan) {
  const T scale = static_cast<T>(*row_scale);
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    const T width = static_cast<T>(output.cols), factor = 2 * scale / width;
    const bool writes = gradient.data != nullptr;
    LossSums found;
    for (Index r = 0; r < output.rows; ++r) {
      const T *const x = output.row(r), *const y = target.row(r);
      T* const g = writes ? gradient.row(r) : nullptr;
      if (ignores_nan && std::any_of(y, y + output.cols, [](T each) { return is_nan(each); })) {
        if (writes) std::fill_n(g, output.cols, T{});
        continue;
      }
      V squares{};
      Index c = 0;
      for (; c + V::count <= output.cols; c += V::count) {
        const V error = V::load(x + c) - V::load(y + c);
        squares = squares + error * error;
        if (writes) (error * factor).store(g + c);
      }
      T sum = squares.sum();
      for (; c < output.cols; ++c) {
        const T error = x[c] - y[c];
        sum += error * error;
        if (writes) g[c] = error * factor;
      }
      found.loss += as_double(sum / width);
    }
    sums->loss += found.loss;
    sums->correct += found.correct;
  });
}

}  // namespace pdp::cpu
