#pragma once

/// Definitions for pdp/cpu/batch_normalise.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cmath>

#include <pdp/core/batch_normalisation.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/batch_normalise.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/source/normalise.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// The numbers by which a channel is computed: slope (x - mean) + term, plus factor times another tensor.
template <class T>
struct ChannelNumbers {
  T mean{}, slope{}, term{}, factor{};
};

/// Returns 1 / sqrt(variance + eps).
inline double scale_of(double variance, const BatchNormalisation& how) { return 1 / std::sqrt(variance + how.eps); }
inline Index least_channels(const BatchNormalisation& how, Index rows) { return least_part / std::max<Index>(rows * how.positions, 1) + 1; }

/// Computes `to` from x, and from `other` if it is not null, by the numbers that find(channel) returns.
template <class E, class Find>
void by_channel(const Cpu& cpu, const BatchNormalisation& how, Matrix<const E> x, const E* other, E* to, Find find) {
  using T = Accumulated<E>;
  in_parts(cpu, how.channels, least_channels(how, x.rows), [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using V = Lanes<T, S>;
      const auto run = [=](Index at, Index count, const auto& mean, const auto& slope, const auto& term, const auto& factor) {
        at_lanes<V>(0, count, [=](const auto& lanes) {
          V value = (lanes(x.data + at) - mean(lanes)) * slope(lanes) + term(lanes);
          if (other != nullptr) value = value + lanes(other + at) * factor(lanes);
          lanes.store(value, to + at);
        });
      };
      if (how.positions > 1) {
        for (Index channel = begin; channel < end; ++channel) {
          const ChannelNumbers<T> by = find(channel);
          for (Index row = 0; row < x.rows; ++row)
            run((row * how.channels + channel) * how.positions, how.positions, Same<T>{by.mean}, Same<T>{by.slope}, Same<T>{by.term},
                Same<T>{by.factor});
        }
        return;
      }
      constexpr Index most = 64;  // channels whose numbers lie on the stack
      std::array<T, as_size(most)> mean, slope, term, factor;
      for (Index first = begin; first < end; first += most) {
        const Index count = std::min(most, end - first);
        for (Index i = 0; i < count; ++i) {
          const ChannelNumbers<T> by = find(first + i);
          mean[as_size(i)] = by.mean, slope[as_size(i)] = by.slope, term[as_size(i)] = by.term, factor[as_size(i)] = by.factor;
        }
        for (Index row = 0; row < x.rows; ++row)
          run(row * how.channels + first, count, Each<T>{mean.data()}, Each<T>{slope.data()}, Each<T>{term.data()}, Each<T>{factor.data()});
      }
    });
  });
}

struct KeepSums {
  void operator()(Index, double&, double&) const {}
};
/// Writes two sums of each channel over all rows. term_of(channel) returns a function of a position, and of lanes from there on, which
/// returns their terms as Two. `sums`: the first sums of all channels, then the second ones. finish(channel, first, second) changes them
/// before they are written.
template <class E, class TermOf, class Finish = KeepSums>
void channel_sums(const Cpu& cpu, const BatchNormalisation& how, Index rows, double* sums, TermOf term_of, Finish finish = {}) {
  in_parts(cpu, how.channels, least_channels(how, rows), [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using T = Accumulated<E>;
      using V = Lanes<T, S>;
      for (Index channel = begin; channel < end; ++channel) {
        const auto term = term_of(channel);
        double first = 0, second = 0;
        for (Index row = 0; row < rows; ++row) {
          const Index at = (row * how.channels + channel) * how.positions;
          const Two<T> found = detail::sums<V>(how.positions, [=](const auto& lanes) { return term(at, lanes); });
          first += as_double(found.first);
          second += as_double(found.second);
        }
        finish(channel, first, second);
        sums[channel] = first;
        sums[how.channels + channel] = second;
      }
    });
  });
}

/// Returns the statistics of a channel in the whole batch.
template <class T>
ChannelStatistics statistics_of(const BatchNormalisation& how, const double* sums, const T* shift, Index channel) {
  return {how, sums, as_double(shift[channel]), channel};
}

}  // namespace detail

template <class T>
void batch_statistics(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* shift, double* sums) {
  sums[0] = as_double(x.rows * how.positions);
  double* const first = sums + 1;
  // The mean of this rank's rows, which the values are near to. In a second pass, few digits of their squares are lost.
  detail::channel_sums<T>(cpu, how, x.rows, first, [=](Index) {
    return [from = x.data](Index at, const auto& lanes) {
      const auto value = lanes(from + at);
      return detail::Two{value, value};
    };
  });
  const double count = sums[0] > 0 ? sums[0] : 1;
  detail::channel_sums<T>(
      cpu, how, x.rows, first,
      [=](Index channel) {
        return [from = x.data, mean = static_cast<Accumulated<T>>(first[channel] / count)](Index at, const auto& lanes) {
          const auto apart = lanes(from + at) - mean;
          return detail::Two{apart, apart * apart};
        };
      },
      [=](Index channel, double& sum, double& squares) {
        const double moved = as_double(static_cast<Accumulated<T>>(first[channel] / count)) - as_double(shift[channel]);
        squares += moved * (2 * sum + moved * sums[0]);
        sum += moved * sums[0];
      });
}

template <class T>
void batch_normalise(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* shift, const double* sums, const T* weight,
                     const T* bias, Matrix<T> y) {
  detail::by_channel<T>(cpu, how, x, nullptr, y.data, [=](Index channel) {
    const ChannelStatistics of = detail::statistics_of(how, sums, shift, channel);
    using N = Accumulated<T>;
    return detail::ChannelNumbers<N>{static_cast<N>(of.mean),
                                     static_cast<N>(detail::scale_of(of.variance, how) * as_double(weight[channel])), bias[channel]};
  });
}

template <class T>
void normalise_channels(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* mean, const T* variance, const T* weight,
                        const T* bias, Matrix<T> y) {
  detail::by_channel<T>(cpu, how, x, nullptr, y.data, [=](Index channel) {
    const double scale = detail::scale_of(as_double(variance[channel]), how);
    using N = Accumulated<T>;
    return detail::ChannelNumbers<N>{mean == nullptr ? T{} : mean[channel], static_cast<N>(scale * as_double(weight[channel])),
                                     bias == nullptr ? T{} : bias[channel]};
  });
}

template <class T>
void batch_gradient_sums(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* shift, Matrix<const T> gradient_y,
                         double* sums) {
  double *const all = sums + how.forward_sums(), *const own = all + how.backward_sums();
  detail::channel_sums<T>(cpu, how, x.rows, all, [=](Index channel) {
    const auto mean = static_cast<Accumulated<T>>(detail::statistics_of(how, sums, shift, channel).mean);
    return [from = x.data, of_y = gradient_y.data, mean](Index at, const auto& lanes) {
      const auto gradient = lanes(of_y + at);
      return detail::Two{gradient, gradient * (lanes(from + at) - mean)};
    };
  });
  for (Index channel = 0; channel < how.channels; ++channel)
    if (x.rows > 0) all[how.channels + channel] *= detail::scale_of(detail::statistics_of(how, sums, shift, channel).variance, how);
  std::copy_n(all, how.backward_sums(), own);
}

template <class T>
void batch_normalise_backward(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* shift, const double* sums,
                              const T* weight, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  const double* const all = sums + how.forward_sums();
  detail::by_channel<T>(cpu, how, x, gradient_y.data, gradient_x.data, [=](Index channel) {
    const ChannelStatistics of = detail::statistics_of(how, sums, shift, channel);
    const double scale = detail::scale_of(of.variance, how), factor = scale * as_double(weight[channel]);
    using N = Accumulated<T>;
    return detail::ChannelNumbers<N>{static_cast<N>(of.mean), static_cast<N>(-factor * scale * all[how.channels + channel] / of.count),
                                     static_cast<N>(-factor * all[channel] / of.count), static_cast<N>(factor)};
  });
}

template <class T>
void batch_parameter_gradients(const Cpu&, const BatchNormalisation& how, Index rows, double momentum, const StepNumbers* numbers,
                               const T* mean, const T* variance, const double* sums, Index block, Accumulated<T>* gradient,
                               bool accumulate) {
  const double* const own = sums + how.forward_sums() + how.backward_sums();
  const double part = rows == 0 ? 0 : as_double(rows) * numbers->row_scale * momentum;
  for (Index channel = 0; channel < how.channels; ++channel) {
    const ChannelStatistics of = detail::statistics_of(how, sums, mean, channel);
    const auto put = [&](Index number, double value) {
      Accumulated<T>& to = gradient[number * block + channel];
      to = (accumulate ? to : 0) + static_cast<Accumulated<T>>(value);
    };
    put(0, own[how.channels + channel]);
    put(1, own[channel]);
    put(2, rows == 0 ? 0 : part * (of.mean - as_double(mean[channel])));
    put(3, rows == 0 ? 0 : part * (of.unbiased() - as_double(variance[channel])));
  }
}

}  // namespace pdp::cpu
