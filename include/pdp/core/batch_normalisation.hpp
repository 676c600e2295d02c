#pragma once

#include <pdp/core/shape.hpp>

namespace pdp {

/// How batch normalisation sees a matrix. A row has `channels` channels, one after another, of `positions` values each. Each channel is
/// normalised with the mean and the variance of its values in all rows of all ranks.
///
/// The ranks add up numbers in forward: the count of a channel's values, then for each channel the sum of x - shift, then the sums of
/// squares of that. `shift` is any number, the same on all ranks: the running mean. In backward they add up for
/// each channel the gradients of y, then the gradients of y times the normalised x. Behind these, a rank keeps its own sums of backward,
/// which are the gradients of bias and weight.
struct BatchNormalisation {
  Index channels = 1;
  Index positions = 1;
  double eps = 1e-5;

  [[nodiscard]] constexpr Index forward_sums() const { return 1 + 2 * channels; }
  [[nodiscard]] constexpr Index backward_sums() const { return 2 * channels; }
  [[nodiscard]] constexpr Index all_sums() const { return forward_sums() + 2 * backward_sums(); }
};

/// The mean of a channel and its variance, from the sums and the shift of the channel.
struct ChannelStatistics {
  double count, mean = 0, variance = 0;

  constexpr ChannelStatistics(const BatchNormalisation& how, const double* sums, double shift, Index channel) : count{sums[0]} {
    const double apart = sums[1 + channel] / count, squares = sums[1 + how.channels + channel] / count - apart * apart;
    mean = shift + apart;
    variance = squares < 0 ? 0 : squares;  // the difference can be below 0 by rounding; NaN stays NaN
  }
  /// Returns the estimate of the variance of all values that there could be, for the running variance.
  [[nodiscard]] constexpr double unbiased() const { return count > 1 ? variance * count / (count - 1) : variance; }
};

}  // namespace pdp
