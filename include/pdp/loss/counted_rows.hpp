#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::loss {

/// A loss that ignores rows. counts(target) returns whether a row with this target counts; target: [target elements], in host memory. A
/// call adds nothing to its sums for a row that does not count, and computes a gradient of zeros. Then means are over the rows that count,
/// on all ranks together.
///
/// An optional member ignores_rows() returns false if this loss counts all rows. Then the ranks need not count them together.
template <class L>
concept IgnoresRows = requires(const L& loss, std::span<const typename L::Target> target) {
  { loss.counts(target) } -> std::same_as<bool>;
};

/// A loss that weighs rows. weight(target) returns what a row with this target adds to the divisor of the mean, at least 0, and 0 for a row
/// that does not count; target: [target elements], in host memory. A call usually multiplies the loss and the gradient of the row by it.
/// Means are divided by the sum of the weights on all ranks together, or by the number of rows that count if this sum is 0.
template <class L>
concept WeighsRows = requires(const L& loss, std::span<const typename L::Target> target) {
  { loss.weight(target) } -> std::same_as<double>;
};

/// Returns whether a loss weighs rows.
template <class L>
[[nodiscard]] constexpr bool weighs_rows() {
  constexpr bool has_weight = requires { requires std::is_member_function_pointer_v<decltype(&L::weight)>; };
  static_assert(!has_weight || WeighsRows<L>,
                "pdp: weight() of this loss must be `double weight(std::span<const Target> target) const`: the weight of a row with this "
                "target");
  return WeighsRows<L>;
}

/// Returns whether a loss may ignore rows.
template <class L>
[[nodiscard]] constexpr bool may_ignore_rows(const L& loss) {
  constexpr bool has_counts = requires { requires std::is_member_function_pointer_v<decltype(&L::counts)>; };
  static_assert(!has_counts || IgnoresRows<L>,
                "pdp: counts() of this loss must be `bool counts(std::span<const Target> target) const`: whether a row with this target "
                "counts");
  if constexpr (!IgnoresRows<L>) {
    return false;
  } else if constexpr (requires {
                         { loss.ignores_rows() } -> std::same_as<bool>;
                       }) {
    return loss.ignores_rows();
  } else {
    return true;
  }
}

/// Returns the number of `rows` rows that count. `targets`: [rows, target elements], in host memory.
template <class L, class Target>
[[nodiscard]] constexpr Index counted_rows(const L& loss, std::span<const Target> targets, Index rows) {
  if (!may_ignore_rows(loss) || rows == 0) return rows;
  Index counted = 0;
  if constexpr (IgnoresRows<L>) {
    static_assert(
        requires(std::span<const Target> target) { loss.counts(target); },
        "pdp: counts() of this loss must take targets in double, too, as its operator() does; make it a template");
    const std::size_t width = targets.size() / as_size(rows);
    if (width == 0) return rows;  // there are too few targets
    for (std::size_t row = 0; row < as_size(rows); ++row) counted += loss.counts(targets.subspan(row * width, width)) ? 1 : 0;
  }
  return counted;
}

/// Returns the sum of the weights of rows, if the loss weighs them, else 0. `targets`: [rows, target elements], in host memory.
template <class L, class Target>
[[nodiscard]] constexpr double weight_of_rows([[maybe_unused]] const L& loss, [[maybe_unused]] std::span<const Target> targets,
                                              [[maybe_unused]] Index rows) {
  if constexpr (!weighs_rows<L>()) {
    return 0;
  } else {
    static_assert(
        requires(std::span<const Target> target) { loss.weight(target); },
        "pdp: weight() of this loss must take targets in double, too, as its operator() does; make it a template");
    double sum = 0;
    const std::size_t width = rows > 0 ? targets.size() / as_size(rows) : 0;
    for (std::size_t row = 0; width > 0 && row < as_size(rows); ++row) sum += loss.weight(targets.subspan(row * width, width));
    return sum;
  }
}

/// Returns the number by which the sum of a loss over rows is divided for their mean: the sum of their weights if it is not 0, else the
/// number of rows that count. `targets`: [rows, target elements], in host memory.
template <class L, class Target>
[[nodiscard]] constexpr double divisor_of_rows(const L& loss, std::span<const Target> targets, Index rows) {
  const double weight = weight_of_rows(loss, targets, rows);
  return weight > 0 ? weight : as_double(counted_rows(loss, targets, rows));
}

/// Throws ConfigError if a loss weighs rows, so that a mean of a part of a batch cannot be over a number of rows that the caller gives.
template <class L>
constexpr void check_rows_given() {
  if constexpr (WeighsRows<L>)
    throw ConfigError{"this loss weighs rows, so its mean is by their weights, not over a number of rows; leave it out"};
}

}  // namespace pdp::loss
