#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

/// The class of a row. Throws ConfigError where there is no logit for it.
inline Index label_of(std::span<const std::int32_t> classes, Index row, Index logits) {
  const std::int32_t label = classes[static_cast<std::size_t>(row)];
  if (label < 0 || label >= logits)
    throw ConfigError{text("row ", row, " of a batch is of class ", label, ", but the model gives ", logits, " outputs, for classes 0 to ",
                           logits - 1, "; either the labels are damaged or the last layer is too narrow")};
  return label;
}

/// Cross-entropy of the softmax of each row of logits against its class. The gradient is (softmax - one_hot) * scale; none is computed into
/// an empty matrix. The largest logit is taken off first, so that no exponential overflows. Throws ConfigError on a class that there is no
/// logit for.
template <class T>
LossSums softmax_cross_entropy(const Cpu&, Matrix<const T> logits, std::span<const std::int32_t> classes, T scale, Matrix<T> gradient) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  LossSums sums;
  for (Index r = 0; r < logits.rows; ++r) {
    const Index label = label_of(classes, r, logits.cols);
    const Eigen::Map<const Array> x{logits.row(r), logits.cols};
    Index best = 0;
    const T largest = x.maxCoeff(&best);
    sums.correct += best == label ? 1 : 0;
    T total{};
    if (gradient.data != nullptr) {
      Eigen::Map<Array> g{gradient.row(r), logits.cols};
      g = (x - largest).exp();
      total = g.sum();
      g *= scale / total;
      g[label] -= scale;
    } else {
      total = (x - largest).exp().sum();
    }
    sums.loss += std::log(static_cast<double>(total)) + static_cast<double>(largest) - static_cast<double>(x[label]);
  }
  return sums;
}

/// What some columns of the logits, those from `first` on, say of each row's cross-entropy, in four numbers: the largest of them, the sum
/// of their exponentials with that one taken off, the logit of the row's class (0 where it is not among them), and whether the largest is
/// that.
template <class T>
void softmax_part(const Cpu&, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first, Index columns, Matrix<T> part) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  for (Index r = 0; r < logits.rows; ++r) {
    const Index label = label_of(classes, r, columns) - first;
    const Eigen::Map<const Array> x{logits.row(r), logits.cols};
    Index best = 0;
    T* const known = part.row(r);
    known[0] = x.maxCoeff(&best);
    known[1] = known[0] > -std::numeric_limits<T>::infinity() ? (x - known[0]).exp().sum() : T{};
    known[2] = label >= 0 && label < logits.cols ? x[label] : T{};
    known[3] = static_cast<T>(best == label);
  }
}

/// softmax_cross_entropy of logits whose columns are divided, from what softmax_part has found of all of them, those from the first columns
/// first. `logits`, `gradient`: the columns from `first` on. Sums are joined as in Milakov and Gimelshein, "Online normalizer calculation
/// for softmax", arXiv:1805.02867.
template <class T>
LossSums softmax_cross_entropy_of_parts(const Cpu&, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                        Matrix<const T> parts, T scale, Matrix<T> gradient) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  LossSums sums;
  for (Index r = 0; r < logits.rows; ++r) {
    const Index label = classes[static_cast<std::size_t>(r)];
    const T* best = parts.row(r);
    for (Index other = r + logits.rows; other < parts.rows; other += logits.rows)
      if (parts.row(other)[0] > best[0]) best = parts.row(other);
    T total{}, logit{};
    for (Index other = r; other < parts.rows; other += logits.rows) {
      const T* const known = parts.row(other);
      total += known[1] * std::exp(known[0] - best[0]);
      logit += known[2];
    }
    if (gradient.data != nullptr) {
      Eigen::Map<Array> g{gradient.row(r), logits.cols};
      g = (Eigen::Map<const Array>{logits.row(r), logits.cols} - best[0]).exp() * (scale / total);
      if (label >= first && label - first < logits.cols) g[label - first] -= scale;
    }
    sums.correct += best[3] != 0 ? 1 : 0;
    sums.loss += std::log(static_cast<double>(total)) + static_cast<double>(best[0]) - static_cast<double>(logit);
  }
  return sums;
}

/// The squared error of each row, divided by its width. The gradient is 2 (output - target) / width * scale; none is computed into an empty
/// matrix.
template <class T>
LossSums squared_error(const Cpu&, Matrix<const T> output, Matrix<const T> target, T scale, Matrix<T> gradient) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  LossSums sums;
  const T width = static_cast<T>(output.cols);
  for (Index r = 0; r < output.rows; ++r) {
    const Eigen::Map<const Array> x{output.row(r), output.cols}, y{target.row(r), output.cols};
    if (gradient.data != nullptr) Eigen::Map<Array>{gradient.row(r), output.cols} = (x - y) * (2 * scale / width);
    sums.loss += static_cast<double>((x - y).square().sum() / width);
  }
  return sums;
}

}  // namespace pdp::host
