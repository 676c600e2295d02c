#pragma once

#include <pdp/core/shape.hpp>

namespace pdp {

/// How normalise() and its gradients see a matrix. A row has `channels` channels, one after another, each of as many positions. The
/// channels of a row form `groups` groups of equal size, also one after another. Each group is normalised by its own mean and variance. A
/// weight and a bias of each channel follow.
///
///   y = (x - mean) / sqrt(variance + eps) * weight + bias
///
/// The variance is that of the values in the group, which is the biased one. If `centred` is false, mean is 0, and so the variance is the
/// mean of x^2.
struct GroupNormalisation {
  Index channels = 1;
  Index groups = 1;   // divides `channels`
  double eps = 1e-5;  // added to the variance
  bool centred = true;

  [[nodiscard]] constexpr Index channels_of_group() const { return channels / groups; }
  /// Return the number of positions of a channel, and of values of a group, in rows of `columns` values.
  [[nodiscard]] constexpr Index positions(Index columns) const { return columns / channels; }
  [[nodiscard]] constexpr Index values_of_group(Index columns) const { return columns / groups; }
};
static_assert(GroupNormalisation{.channels = 6, .groups = 2}.values_of_group(12) == 6);

}  // namespace pdp
