#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <span>

#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

/// Cross-entropy of the softmax of each row of logits against its class. The gradient is (softmax - one_hot) * scale; none is computed into
/// an empty matrix. The largest logit is taken off first, so that no exponential overflows. Throws ConfigError on a class that there is no
/// logit for.
template <class T>
LossSums softmax_cross_entropy(const Cpu&, Matrix<const T> logits, std::span<const std::int32_t> classes, T scale, Matrix<T> gradient) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  LossSums sums;
  for (Index r = 0; r < logits.rows; ++r) {
    const std::int32_t label = classes[static_cast<std::size_t>(r)];
    if (label < 0 || label >= logits.cols)
      throw ConfigError{text("row ", r, " of a batch is of class ", label, ", but the model gives ", logits.cols,
                             " outputs, for classes 0 to ", logits.cols - 1,
                             "; either the labels are damaged or the last layer is too narrow")};
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
