#pragma once

/// Definitions for pdp/cpu/normalise.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cmath>

#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/group_normalisation.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/normalise.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// A position in loops over numbers: at(values) loads the numbers there, as a register, as its first lanes, or as a single number.
template <class V, class Io>
struct LanesAt {
  Index index;
  [[no_unique_address]] Io io;
  template <class E>
  [[gnu::always_inline]] V operator()(const E* values) const {
    return io.load(values + index);
  }
  template <class E>
  [[gnu::always_inline]] void store(const V& lanes, E* values) const {
    io.store(lanes, values + index);
  }
};
template <class T>
struct NumberAt {
  Index index;
  template <class E>
  [[gnu::always_inline]] T operator()(const E* values) const {
    return values[index];
  }
};

/// Calls body(at) for all positions from begin to end - 1. Each element goes through the same operations, regardless of its position.
template <class V, class Body>
[[gnu::always_inline]] inline void at_lanes(Index begin, Index end, const Body& body) {
  Index i = begin;
  for (; i + V::count <= end; i += V::count) body(LanesAt<V, WholeLanes<V>>{i, {}});
  if (i < end) body(LanesAt<V, SomeLanes<V>>{i, {end - i}});
}

/// Two terms of two sums.
template <class N>
struct Two {
  N first{}, second{};
  [[gnu::always_inline]] void operator+=(const Two& other) {
    first = first + other.first;
    second = second + other.second;
  }
};
template <class N>
Two(N, N) -> Two<N>;  // clang 16 does not deduce the types of aggregates

/// Returns the sums of term(at), which returns Two, over `count` positions.
template <class V, class Term>
[[gnu::always_inline]] inline Two<typename V::Number> sums(Index count, const Term& term) {
  using T = typename V::Number;
  Two<V> even, odd;  // a compiler must not reorder the terms of a single sum
  Index i = 0;
  for (; i + 2 * V::count <= count; i += 2 * V::count) {
    even += term(LanesAt<V, WholeLanes<V>>{i, {}});
    odd += term(LanesAt<V, WholeLanes<V>>{i + V::count, {}});
  }
  for (; i + V::count <= count; i += V::count) even += term(LanesAt<V, WholeLanes<V>>{i, {}});
  even += odd;
  Two<T> total{even.first.sum(), even.second.sum()};
  for (; i < count; ++i) total += term(NumberAt<T>{i});
  return total;
}

/// The mean and the variance of a group: the mean is shift + rest, in more digits than one number has.
template <class T>
struct Statistics {
  T shift{}, rest{};
  T scale{};  // 1 / sqrt(variance + eps)

  template <class N>
  [[gnu::always_inline]] N normalised(const N& x) const {
    return ((x - shift) - rest) * scale;
  }
};
template <class V, class E>
[[gnu::always_inline]] inline Statistics<typename V::Number> statistics(const E* x, Index count, bool centred, double eps) {
  using T = typename V::Number;
  const auto number = static_cast<T>(count);
  const T shift = centred ? sums<V>(count, [=](const auto& at) { return Two{at(x), at(x)}; }).first / number : T{};
  const Two<T> found = sums<V>(count, [=](const auto& at) {
    const auto apart = at(x) - shift;
    return Two{apart, apart * apart};
  });
  const T rest = centred ? found.first / number : T{};
  const T variance = found.second / number - rest * rest;
  // The difference can be below 0 by rounding. NaN stays NaN.
  return {shift, rest, 1 / std::sqrt((variance < 0 ? T{} : variance) + static_cast<T>(eps))};
}

/// A number for each position, such as the weights of channels with one position, and the same number for all of them.
template <class T>
struct Each {
  const T* values;
  template <class At>
  [[gnu::always_inline]] auto operator()(const At& at) const {
    return at(values);
  }
};
template <class T>
struct Same {
  T value;
  template <class At>
  [[gnu::always_inline]] T operator()(const At&) const {
    return value;
  }
};
/// Calls visit(first, count, weight, bias) for parts of a group that together are the whole group. They are the channels, or the whole
/// group if channels have one position. weight(at) and bias(at) return the numbers for positions from `first` on. `weight` and `bias` are
/// those of the group's first channel; `bias` may be null.
template <class E, class Visit>
[[gnu::always_inline]] inline void for_each_run(Index channels, Index positions, const E* weight, const E* bias, const Visit& visit) {
  using T = Accumulated<E>;
  if (positions == 1 && bias != nullptr) return visit(Index{0}, channels, Each<E>{weight}, Each<E>{bias});
  if (positions == 1) return visit(Index{0}, channels, Each<E>{weight}, Same<T>{});
  for (Index channel = 0; channel < channels; ++channel)
    visit(channel * positions, positions, Same<T>{weight[channel]}, Same<T>{bias != nullptr ? T{bias[channel]} : T{}});
}

/// Returns the smallest number of groups that is worth a thread.
inline Index least_groups(Index values_of_group) { return least_costly_part / std::max<Index>(values_of_group, 1) + 1; }

}  // namespace detail

template <class T>
void normalise(const Cpu& cpu, const GroupNormalisation& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y) {
  const Index count = how.values_of_group(x.cols), channels = how.channels_of_group(), positions = how.positions(x.cols);
  in_parts(cpu, x.rows * how.groups, detail::least_groups(count), [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using V = Lanes<Accumulated<T>, S>;
      for (Index group = begin; group < end; ++group) {
        const T* const from = x.data + group * count;
        T* const to = y.data + group * count;
        const auto of = detail::statistics<V>(from, count, how.centred, how.eps);
        const Index channel = group % how.groups * channels;
        detail::for_each_run(channels, positions, weight + channel, bias != nullptr ? bias + channel : nullptr,
                             [=](Index first, Index some, auto factor, auto term) {
                               detail::at_lanes<V>(0, some, [=](const auto& at) {
                                 at.store(of.normalised(at(from + first)) * factor(at) + term(at), to + first);
                               });
                             });
      }
    });
  });
}

// With x^ = (x - mean) scale, g = weight * gradient of y, and means over the group: gradient of x = scale (g - mean(g) - x^ mean(g x^)).
// If the mean of x is not subtracted, there is no mean(g).
template <class T>
void normalise_backward_input(const Cpu& cpu, const GroupNormalisation& how, Matrix<const T> x, const T* weight, Matrix<const T> gradient_y,
                              Matrix<T> gradient_x) {
  const Index count = how.values_of_group(x.cols), channels = how.channels_of_group(), positions = how.positions(x.cols);
  in_parts(cpu, x.rows * how.groups, detail::least_groups(count), [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using V = Lanes<Accumulated<T>, S>;
      for (Index group = begin; group < end; ++group) {
        const T *const in = x.data + group * count, *const gradient = gradient_y.data + group * count;
        T* const to = gradient_x.data + group * count;
        const T* const factors = weight + group % how.groups * channels;
        const auto of = detail::statistics<V>(in, count, how.centred, how.eps);
        detail::Two<Accumulated<T>> means;
        detail::for_each_run<T>(channels, positions, factors, nullptr, [=, &means](Index first, Index some, auto factor, auto) {
          means += detail::sums<V>(some, [=](const auto& at) {
            const auto g = at(gradient + first) * factor(at);
            return detail::Two{g, g * of.normalised(at(in + first))};
          });
        });
        const auto number = static_cast<Accumulated<T>>(count);
        const auto mean = how.centred ? means.first / number : 0, slope = means.second / number;
        detail::for_each_run<T>(channels, positions, factors, nullptr, [=](Index first, Index some, auto factor, auto) {
          detail::at_lanes<V>(0, some, [=](const auto& at) {
            const auto g = at(gradient + first) * factor(at);
            at.store((g - mean - of.normalised(at(in + first)) * slope) * of.scale, to + first);
          });
        });
      }
    });
  });
}

namespace detail {

/// Some groups of some rows, with their statistics: those of row r and group g are statistics[(r - first_row) * groups + g - first_group].
template <class T>
struct SomeGroups {
  Index first_row, rows, first_group, groups;
  const Statistics<T>* statistics;
};

/// Adds the gradients of some channels of these groups for these rows. The channels are counted from the first of these groups.
template <class V, class T, class E>
[[gnu::always_inline]] inline void add_gradients(const GroupNormalisation& how, const SomeGroups<T>& these, Index begin, Index end,
                                                 Matrix<const E> x, Matrix<const E> gradient_y, T* gradient_weight, T* gradient_bias) {
  const Index channels = how.channels_of_group(), positions = how.positions(x.cols), first = these.first_group * channels;
  if (positions > 1) {
    for (Index channel = begin; channel < end; ++channel) {
      Two<T> total;
      for (Index row = 0; row < these.rows; ++row) {
        const auto of = these.statistics[row * these.groups + channel / channels];
        const Index at_row = (these.first_row + row) * x.cols + (first + channel) * positions;
        const E *const in = x.data + at_row, *const gradient = gradient_y.data + at_row;
        total += sums<V>(positions, [=](const auto& at) {
          const auto g = at(gradient);
          return Two{g * of.normalised(at(in)), g};
        });
      }
      gradient_weight[first + channel] += total.first;
      if (gradient_bias != nullptr) gradient_bias[first + channel] += total.second;
    }
    return;
  }
  constexpr Index together = 32;  // rows, so that they stay in the cache while columns are added up, a register at a time
  for (Index row = 0; row < these.rows; row += together) {
    const Index last = std::min(row + together, these.rows);
    for (Index group = begin / channels; group * channels < end; ++group) {
      at_lanes<V>(std::max(begin, group * channels), std::min(end, (group + 1) * channels), [=](const auto& at) {
        Two<V> total;
        for (Index each = row; each < last; ++each) {
          const auto of = these.statistics[each * these.groups + group];
          const Index at_row = (these.first_row + each) * x.cols + first;
          const V g = at(gradient_y.data + at_row);
          total += {g * of.normalised(at(x.data + at_row)), g};
        }
        at.store(at(gradient_weight + first) + total.first, gradient_weight + first);
        if (gradient_bias != nullptr) at.store(at(gradient_bias + first) + total.second, gradient_bias + first);
      });
    }
  }
}

}  // namespace detail

template <class T>
void normalise_backward_weight(const Cpu& cpu, const GroupNormalisation& how, Matrix<const T> x, Matrix<const T> gradient_y,
                               Accumulated<T>* gradient_weight, Accumulated<T>* gradient_bias, bool accumulate) {
  using Sum = Accumulated<T>;
  if (!accumulate) {
    std::fill_n(gradient_weight, how.channels, Sum{});
    if (gradient_bias != nullptr) std::fill_n(gradient_bias, how.channels, Sum{});
  }
  // Threads take groups to compute statistics, and then channels to add up rows in order. So no sum depends on the number of threads.
  constexpr Index most = 256;
  std::array<detail::Statistics<Sum>, as_size(most)> statistics;
  const Index count = how.values_of_group(x.cols), channels = how.channels_of_group(), together = std::min(how.groups, most);
  constexpr Index least_columns = 128;  // with fewer columns, threads would share cache lines
  const bool are_columns = how.positions(x.cols) == 1;
  for (Index first_row = 0; first_row < x.rows; first_row += most / together) {
    for (Index first_group = 0; first_group < how.groups; first_group += together) {
      const detail::SomeGroups<Sum> these{first_row, std::min(most / together, x.rows - first_row), first_group,
                                          std::min(together, how.groups - first_group), statistics.data()};
      in_parts(cpu, these.rows * these.groups, detail::least_groups(count), [&](Index begin, Index end) {
        with_simd(cpu.simd(), [=, all = statistics.data()]<Simd S>() {
          for (Index each = begin; each < end; ++each) {
            const Index group = (first_row + each / these.groups) * how.groups + first_group + each % these.groups;
            all[each] = detail::statistics<Lanes<Sum, S>>(x.data + group * count, count, how.centred, how.eps);
          }
        });
      });
      const Index of_channel = std::max<Index>(these.rows * how.positions(x.cols), 1);
      in_parts(cpu, these.groups * channels, std::max(are_columns ? least_columns : 1, least_costly_part / of_channel + 1),
               [&](Index begin, Index end) {
                 with_simd(cpu.simd(), [=]<Simd S>() {
                   detail::add_gradients<Lanes<Sum, S>>(how, these, begin, end, x, gradient_y, gradient_weight, gradient_bias);
                 });
               });
    }
  }
}

}  // namespace pdp::cpu
